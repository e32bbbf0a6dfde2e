// Votes of a split warp, of whole warps and of the block; out[6][64].
extern "C" __global__ void votes(unsigned* out)
{
    const int t = threadIdx.x, lane = t % 32;
    unsigned ballot;
    if (lane < 12)
        ballot = __ballot_sync(0x00000fffu, t & 1);
    else
        ballot = __ballot_sync(0xfffff000u, t & 2);
    out[t] = ballot;
    out[64 + t] = __any_sync(0xffffffffu, t == 40);
    out[128 + t] = __all_sync(0xffffffffu, t >= 32);
    out[192 + t] = __syncthreads_count(t % 3 == 0);
    out[256 + t] = __syncthreads_or(t == 5);
    out[320 + t] = __syncthreads_and(t < 63);
}
