// What threads do together. Each kernel: 2 blocks of 64 threads; x has 128 floats, and so has y.

extern "C" __global__ void block_votes(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int n = __syncthreads_count(x[i] > 32.0f);
    const int all = __syncthreads_and(x[i] >= 0.0f), any = __syncthreads_or(x[i] > 126.0f);
    y[i] = float(n + 100 * all + 200 * any);
}

extern "C" __global__ void warp_votes(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool large = x[i] > 40.0f;
    const unsigned votes = __ballot_sync(0xffffffffu, large);
    y[i] = float(__popc(votes) + 100 * __any_sync(0xffffffffu, large) + 200 * __all_sync(0xffffffffu, large));
}

extern "C" __global__ void shuffles(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = x[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    sum += __shfl_down_sync(0xffffffffu, x[i], 1) + __shfl_up_sync(0xffffffffu, x[i], 2, 8);
    y[i] = sum + __shfl_sync(0xffffffffu, x[i], 5);
}

extern "C" __global__ void matches(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int all;
    const unsigned same = __match_any_sync(0xffffffffu, int(x[i]) % 4);
    __match_all_sync(0xffffffffu, i / 32, &all);
    y[i] = float(__ffs(same) + 100 * all);
}

extern "C" __global__ void warp_reductions(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned v = unsigned(x[i]);
    y[i] = float(__reduce_add_sync(0xffffffffu, v) + __reduce_max_sync(0xffffffffu, v) +
                 __reduce_or_sync(0xffffffffu, v));
}

extern "C" __global__ void active_masks(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mask;
    if (threadIdx.x % 4 == 0)
        mask = __activemask();
    else
        mask = __activemask();
    y[i] = x[i] + float(mask >> threadIdx.x % 32 & 1);
}

extern "C" __global__ void warp_barriers(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float line[64];
    line[threadIdx.x] = x[i];
    __syncwarp();
    y[i] = line[threadIdx.x ^ 1];
}

extern "C" __global__ void sleep_and_clock(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const long long start = clock64();
    __nanosleep(10);
    y[i] = x[i] + float(clock64() >= start);
}
