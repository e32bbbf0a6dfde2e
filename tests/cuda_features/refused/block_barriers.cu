#include <cuda/barrier>
extern "C" __global__ void block_barriers(const float* x, float* y) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ float line[64];
    if (threadIdx.x == 0) init(&barrier, 64);
    __syncthreads();
    line[threadIdx.x] = x[threadIdx.x];
    barrier.arrive_and_wait();
    y[threadIdx.x] = line[63 - threadIdx.x];
}
