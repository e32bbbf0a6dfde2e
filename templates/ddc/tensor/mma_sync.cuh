// MMA, by mma.sync: the products of a warp, each with one fragment of weights.
// Needs     nothing
// Provides  Tile: sums; multiply_add
struct Tile {
    float at[4];  // rows l4 l3 l2 and 8 + l4 l3 l2, two columns in each
};

// Returns a b + c.
__device__ __forceinline__ Tile multiply_add(const unsigned (&a)[4], uint2 b, const Tile& c)
{
    Tile sum = c;
#ifdef AUTOTUNE_HOST
    const unsigned words[2] = {b.x, b.y};
    cuda_host_mma_m16n8k16_f16(sum.at, a, words);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, "
        "{ %10, %11, %12, %13};"
        : "=f"(sum.at[0]), "=f"(sum.at[1]), "=f"(sum.at[2]), "=f"(sum.at[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "f"(c.at[0]), "f"(c.at[1]), "f"(c.at[2]),
          "f"(c.at[3]));
#endif
    return sum;
}
