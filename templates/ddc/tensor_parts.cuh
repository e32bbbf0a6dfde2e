// The largest part of `n` products, whole groups, that divides it, up to `most`: its samples are in registers together.
__host__ __device__ constexpr int part_of(int n, int most)
{
    int part = most < GROUP_STEPS ? GROUP_STEPS : most;
    while (part > GROUP_STEPS && (n % part != 0 || part % GROUP_STEPS != 0))
        --part;
    return part;
}
constexpr int PART_STEPS = part_of(K_STEPS, MOST_PART);
constexpr int PARTS = K_STEPS / PART_STEPS;

// The compiler must not make a number again from others wherever it is used.
template <class Number>
__device__ __forceinline__ Number kept(Number number)
{
#ifndef AUTOTUNE_HOST
    asm volatile("" : "+r"(number));
#endif
    return number;
}
