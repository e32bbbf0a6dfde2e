// out[6][n]: 64-bit products and counts; a, b are any 64-bit words.
extern "C" __global__ void wide_integers(unsigned long long* __restrict__ out, const unsigned long long* __restrict__ a,
                                         const unsigned long long* __restrict__ b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const unsigned long long x = a[i], y = b[i];
    out[0 * n + i] = __umul64hi(x, y);
    out[1 * n + i] = (unsigned long long)__mul64hi((long long)x, (long long)y);
    out[2 * n + i] = __popcll(x);
    out[3 * n + i] = __clzll((long long)(x >> (y & 63)));
    out[4 * n + i] = __brevll(x);
    out[5 * n + i] = x * y;
}
