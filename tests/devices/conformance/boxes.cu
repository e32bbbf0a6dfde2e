// out[row][word] = the sum of all boxes' words there: a thread has boxes copied into a ring of stages; warps add them.
// A box is ROWS rows of WORDS words, swizzled within 64 bytes, of an array [n_rows][n_words] that it may reach out of.
constexpr int STAGES = 3, ROWS = 32, WORDS = 16, CONSUMERS = 2;
constexpr int STAGE = ROWS * WORDS * 4;

struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

__device__ __forceinline__ void init(unsigned barrier, int n)
{
#ifdef AUTOTUNE_HOST
    cuda_host_init_barrier(barrier, n);
#else
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(n) : "memory");
#endif
}

__device__ __forceinline__ void arrive(unsigned barrier, int n_bytes = 0)
{
#ifdef AUTOTUNE_HOST
    cuda_host_arrive(barrier, n_bytes);
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(n_bytes) : "memory");
#endif
}

__device__ __forceinline__ void wait(unsigned barrier, unsigned parity)
{
#ifdef AUTOTUNE_HOST
    cuda_host_wait(barrier, parity);
#else
    unsigned is_over;
    do {
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(is_over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!is_over);
#endif
}

__device__ __forceinline__ void copy(unsigned to, const TensorMap* map, unsigned barrier, int x, int y)
{
#ifdef AUTOTUNE_HOST
    cuda_host_copy(to, map, barrier, {x, y});
#else
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, { %3, %4}], [%2];"
                 :
                 : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
#endif
}

extern "C" __global__ void boxes(
    unsigned* out, const unsigned* in, int n_boxes, int first_row, const __grid_constant__ TensorMap map)
{
    extern __shared__ unsigned char dynamic_shared[];
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(dynamic_shared));
    const unsigned copied = base + STAGES * STAGE, released = copied + STAGES * 8;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            init(copied + i * 8, 1);
            init(released + i * 8, CONSUMERS);
        }
#ifndef AUTOTUNE_HOST
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#endif
    }
    __syncthreads();  // the barriers are ready
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) {
        for (int i = 0; i < n_boxes && lane == 0; ++i) {
            const int stage = i % STAGES;
            wait(released + stage * 8, i / STAGES % 2 ^ 1);
            arrive(copied + stage * 8, STAGE);
            copy(base + stage * STAGE, &map, copied + stage * 8, i * WORDS, first_row);
        }
        return;
    }
    unsigned sums[WORDS] = {};  // of the lane's row
    for (int i = 0; i < n_boxes; ++i) {
        const int stage = i % STAGES;
        wait(copied + stage * 8, i / STAGES % 2);
        for (int word = 0; word < WORDS; ++word) {
            const int at = (lane * WORDS + word) * 4;
            sums[word] += *reinterpret_cast<unsigned*>(dynamic_shared + stage * STAGE + (at ^ at >> 3 & 0x30));
        }
        __syncwarp();  // all lanes have read
        if (lane == 0)
            arrive(released + stage * 8);
    }
    if (warp == 1)
        for (int word = 0; word < WORDS; ++word)
            out[lane * WORDS + word] = sums[word];
}
