// Kinds of memory, and how it is read and written. Each kernel: 2 blocks of 64 threads; x has 128 floats, and so has y.
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

extern "C" __global__ void static_shared(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float line[64];
    line[threadIdx.x] = x[i];
    __syncthreads();
    y[i] = line[63 - threadIdx.x];
}

extern "C" __global__ void dynamic_shared(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    extern __shared__ float dynamic[];
    dynamic[threadIdx.x] = x[i];
    __syncthreads();
    y[i] = dynamic[63 - threadIdx.x];
}

template <class T>
__device__ T reversed(T v) {
    extern __shared__ __align__(16) unsigned char raw[];
    T* const line = reinterpret_cast<T*>(raw);
    line[threadIdx.x] = v;
    __syncthreads();
    return line[63 - threadIdx.x];
}
extern "C" __global__ void dynamic_shared_of_a_template(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = reversed(x[i]);
}

__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
extern "C" __global__ void constant_memory(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * table[i % 4];
}

__device__ float kept[128];
extern "C" __global__ void device_variables(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    kept[i] = x[i];
    y[i] = kept[i] + 1.0f;
}

struct Factors {
    float slope, start;
};
extern "C" __global__ void grid_constants(const float* x, float* y, const __grid_constant__ Factors factors) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * factors.slope + factors.start;
}

extern "C" __global__ void vector_loads(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 32) {
        const float4 v = reinterpret_cast<const float4*>(x)[i];
        reinterpret_cast<float4*>(y)[i] = make_float4(v.w, v.z, v.y, v.x);
    }
}

extern "C" __global__ void cache_hints(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float sum = __ldg(x + i) + __ldcs(x + i) + __ldcg(x + i) + __ldca(&x[i]);
    __stcs(y + i, sum);
}

extern "C" __global__ void bytes(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float pair[2];
    memset(pair, 0, sizeof pair);
    memcpy(&pair[1], &x[i], sizeof(float));
    y[i] = pair[0] + pair[1];
}

extern "C" __global__ void pipelines(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float line[64];
    __pipeline_memcpy_async(&line[threadIdx.x], &x[i], sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    y[i] = line[63 - threadIdx.x];
}

extern "C" __global__ void group_memcpy_async(const float* x, float* y) {
    namespace cg = cooperative_groups;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ alignas(16) float line[64];
    const cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, line, x + blockIdx.x * 64, sizeof line);
    cg::wait(block);
    y[i] = line[63 - threadIdx.x];
}

extern "C" __global__ void fences(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    volatile float* const out = y;
    out[i] = x[i];
    __threadfence_block();
    __threadfence();
    out[i] = out[i] + 1.0f;
}
