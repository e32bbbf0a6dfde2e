#include <cooperative_groups.h>
extern "C" __global__ void grid_sync(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
    cooperative_groups::this_grid().sync();
    y[i] += y[127 - i];
}
