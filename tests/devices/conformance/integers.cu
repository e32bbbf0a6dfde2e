// out[16][n] = each integer intrinsic of (a, b, c).
extern "C" __global__ void integers(unsigned* __restrict__ out, const unsigned* __restrict__ a,
                                    const unsigned* __restrict__ b, const unsigned* __restrict__ c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const unsigned x = a[i], y = b[i], z = c[i];
    out[0 * n + i] = __byte_perm(x, y, z & 0x7777);
    out[1 * n + i] = __byte_perm(x, y, z & 0xffff);
    out[2 * n + i] = __funnelshift_l(x, y, z);
    out[3 * n + i] = __funnelshift_r(x, y, z);
    out[4 * n + i] = __funnelshift_lc(x, y, z & 63);
    out[5 * n + i] = __funnelshift_rc(x, y, z & 63);
    out[6 * n + i] = (unsigned)__dp4a((int)x, (int)y, (int)z);
    out[7 * n + i] = __dp4a(x, y, z);
    out[8 * n + i] = __popc(x);
    out[9 * n + i] = __clz((int)(x >> (z & 31)));
    out[10 * n + i] = __ffs((int)(x << (z & 31)));
    out[11 * n + i] = __brev(x);
    out[12 * n + i] = __umulhi(x, y);
    out[13 * n + i] = (unsigned)__mulhi((int)x, (int)y);
    out[14 * n + i] = (unsigned)max((int)x, (int)y);
    out[15 * n + i] = min(x, y);
}
