#include <cuda_pipeline.h>
// out[t] = sum over rounds and parts of in[round][127 - t], through a double buffer filled asynchronously.
extern "C" __global__ void __launch_bounds__(128)
pipeline(float* __restrict__ out, const float4* __restrict__ in, int n_rounds)
{
    __shared__ float4 buffer[2][128];
    const int t = threadIdx.x;
    float sum = 0.0f;
    __pipeline_memcpy_async(&buffer[0][t], &in[t], sizeof(float4));
    __pipeline_commit();
    for (int round = 0; round < n_rounds; round++) {
        if (round + 1 < n_rounds)
            __pipeline_memcpy_async(&buffer[(round + 1) % 2][t], &in[(round + 1) * 128 + t], sizeof(float4));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();  // everybody's part of this round has arrived
        const float4 v = buffer[round % 2][127 - t];
        sum += v.x + v.y + v.z + v.w;
        __syncthreads();  // and is read before the round after next overwrites it
    }
    out[t] = sum;
}
