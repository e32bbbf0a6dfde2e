// The calling thread's number, read again. The compiler does not know that it is the same: it does not compute what follows
// from it before a loop, and keep it in registers, or in local memory, until it is wanted.
__device__ __forceinline__ int thread_again()
{
#ifdef AUTOTUNE_HOST
    return threadIdx.x;
#else
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
#endif
}

// Spectra of a heap: those of a part, or of what a block has of it. Numbers in [from, to) are made.
struct Part {
    long long heap;
    int in_heap;  // number of the first spectrum in the heap
    int from, to;

    __device__ __forceinline__ bool has_any() const { return from < to; }
    __device__ __forceinline__ bool has(int s) const { return from <= s && s < to; }
    __device__ __forceinline__ bool is_whole(int s, int n) const { return from <= s && s + n <= to; }
    __device__ __forceinline__ long long first() const { return heap * SPECTRA_PER_HEAP + in_heap; }
};

__device__ __forceinline__ int clamped(long long value, int most)
{
    return value < 0 ? 0 : value > most ? most : static_cast<int>(value);
}

// Spectra `skipped` to skipped + n of part number `index`, counted from that of first_spectrum.
__device__ __forceinline__ Part part_at(long long index, int skipped, int n, long long first_spectrum, long long n_spectra)
{
    const long long number = first_spectrum / SPECTRA_PER_HEAP * PARTS_PER_HEAP +
                             first_spectrum % SPECTRA_PER_HEAP / PART_SPECTRA + index;
    Part part;
    part.heap = number / PARTS_PER_HEAP;
    part.in_heap = static_cast<int>(number % PARTS_PER_HEAP) * PART_SPECTRA + skipped;
    const long long first = part.first();
    const int there = clamped(SPECTRA_PER_HEAP - part.in_heap, n);
    part.from = clamped(first_spectrum - first, there);
    part.to = clamped(first_spectrum + n_spectra - first, there);
    return part;
}

// Adds N sums over the threads of a block, one addition each. A barrier is behind it.
template <int BLOCK, int N>
__device__ __forceinline__ void add_sums(
    unsigned long long* total, unsigned long long (*of_warps)[BLOCK / 32], const unsigned long long (&sums)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i) {
        unsigned long long sum = sums[i];
        if constexpr (SMALL_SQUARES) {
            sum = __reduce_add_sync(0xffffffffu, static_cast<unsigned>(sum));
        } else {
#pragma unroll
            for (int step = 16; step > 0; step /= 2)
                sum += __shfl_xor_sync(0xffffffffu, sum, step);
        }
        if (threadIdx.x % 32 == 0)
            of_warps[i][threadIdx.x / 32] = sum;
    }
    __syncthreads();  // the sums of all warps are there
    if (threadIdx.x < N) {
        unsigned long long sum = 0;
#pragma unroll
        for (int warp = 0; warp < BLOCK / 32; ++warp)
            sum += of_warps[threadIdx.x][warp];
        if (sum != 0)
            atomicAdd(total + threadIdx.x, sum);
    }
}
