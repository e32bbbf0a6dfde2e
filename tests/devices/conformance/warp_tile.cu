// Warps that share nothing: each reverses its 32 values through shared memory, with barriers of the warp only.
extern "C" __global__ void warp_tile(int* __restrict__ out, const int* __restrict__ in, int n_rounds)
{
    __shared__ int tile[4][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int value = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int round = 0; round < n_rounds; round++) {
        tile[warp][lane] = value;
        __syncwarp();  // the row is complete
        value = tile[warp][31 - lane] + 1;
        __syncwarp();  // and read before it is written again
    }
    // Halves of a warp on their own: lane 0 and lane 16 gather their half.
    const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    tile[warp][lane] = value;
    __syncwarp(half);  // this half of the row is complete
    if (lane % 16 == 0) {
        int sum = 0;
        for (int i = 0; i < 16; i++)
            sum += tile[warp][lane + i];
        value = sum;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
