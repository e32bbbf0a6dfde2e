#include <cooperative_groups.h>
extern "C" __global__ __cluster_dims__(2) void clusters(const float* x, float* y) {
    __shared__ float v;
    if (threadIdx.x == 0) v = x[blockIdx.x];
    cooperative_groups::this_cluster().sync();
    y[blockIdx.x * blockDim.x + threadIdx.x] = *cooperative_groups::this_cluster().map_shared_rank(&v, 0);
}
