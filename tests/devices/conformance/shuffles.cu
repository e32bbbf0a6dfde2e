// out[4][64]: the thread whose value each of two warps' lanes receives, in segments of `width` lanes.
extern "C" __global__ void shuffles(int* out, int width, int argument)
{
    const int t = threadIdx.x;
    out[t] = __shfl_sync(0xffffffffu, t, argument, width);
    out[64 + t] = __shfl_up_sync(0xffffffffu, t, argument, width);
    out[128 + t] = __shfl_down_sync(0xffffffffu, t, argument, width);
    out[192 + t] = __shfl_xor_sync(0xffffffffu, t, argument, width);
}
