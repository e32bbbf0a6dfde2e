// Cooperative groups. Each kernel: 2 blocks of 64 threads; x has 128 floats, and so has y.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void thread_blocks(const float* x, float* y) {
    const cg::thread_block block = cg::this_thread_block();
    __shared__ float line[64];
    const unsigned i = block.group_index().x * block.size() + block.thread_rank();
    line[block.thread_rank()] = x[i];
    block.sync();
    y[i] = line[63 - block.thread_index().x];
}

extern "C" __global__ void tiles(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    float sum = x[i];
    for (int step = tile.size() / 2; step > 0; step /= 2) sum += tile.shfl_xor(sum, step);
    tile.sync();
    y[i] = sum + tile.shfl_down(x[i], 1) + float(tile.meta_group_rank() + 10 * tile.thread_rank());
}

extern "C" __global__ void tile_votes(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const bool large = x[i] > 40.0f;
    y[i] = float(__popc(tile.ballot(large)) + 100 * tile.any(large) + 200 * tile.all(large));
}

extern "C" __global__ void coalesced_groups(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = -1.0f;
    if (x[i] > 40.0f) {
        const cg::coalesced_group active = cg::coalesced_threads();
        y[i] = float(active.size()) + active.shfl(x[i], 0);
    }
}

extern "C" __global__ void group_reductions(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    y[i] = cg::reduce(tile, x[i], cg::plus<float>()) + float(cg::reduce(tile, int(x[i]), cg::greater<int>()));
}

extern "C" __global__ void group_scans(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    y[i] = cg::inclusive_scan(tile, x[i], cg::plus<float>());
}
