#include <stdlib.h>
extern "C" __global__ void heap(const float* x, float* y) {
    float* const own = static_cast<float*>(malloc(sizeof(float)));
    *own = x[threadIdx.x];
    y[threadIdx.x] = *own;
    free(own);
}
