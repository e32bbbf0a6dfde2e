// Total power: the squares of samples, which a thread adds up first, and then the block.
// Needs     samples.cuh (SAMPLE_SCALE)
// Provides  add_squares; whole; add_sums

// Adds the squares of a point's samples. If Squares is float, it holds their sum exactly.
__device__ __forceinline__ void add_squares(Squares& sum, float2 point)
{
    if constexpr (FLOAT_SQUARES) {
        sum = static_cast<Squares>(__fmaf_rn(point.x, point.x, __fmaf_rn(point.y, point.y, static_cast<float>(sum))));
    } else {
        const int a = __float2int_rn(point.x * (1.0f / SAMPLE_SCALE));
        const int b = __float2int_rn(point.y * (1.0f / SAMPLE_SCALE));
        sum += static_cast<unsigned>(a * a);
        sum += static_cast<unsigned>(b * b);
    }
}

// Returns a sum of squares without the scale of samples.
__device__ __forceinline__ unsigned long long whole(Squares sum)
{
    if constexpr (FLOAT_SQUARES)
        return static_cast<unsigned>(static_cast<float>(sum) * (1.0f / (SAMPLE_SCALE * SAMPLE_SCALE)));
    else
        return static_cast<unsigned long long>(sum);
}

// Adds up N sums over the BLOCK threads of a block, and adds each result to `total` by one atomic addition. `of_warps`
// is in shared memory. All threads pass a barrier.
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
    __syncthreads();  // the sums of all warps are stored
    if (threadIdx.x < N) {
        unsigned long long sum = 0;
#pragma unroll
        for (int warp = 0; warp < BLOCK / 32; ++warp)
            sum += of_warps[threadIdx.x][warp];
        if (sum != 0)
            atomicAdd(total + threadIdx.x, sum);
    }
}
