#include <cuda/std/complex>
extern "C" __global__ void libcuxx(const float* x, float* y) {
    const cuda::std::complex<float> v(x[threadIdx.x], 1.0f);
    y[threadIdx.x] = cuda::std::norm(v);
}
