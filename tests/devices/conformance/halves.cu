#include <cuda_fp16.h>
// out[6][n]: float -> half -> float, and arithmetic in half.
extern "C" __global__ void halves(unsigned short* __restrict__ out, const float* __restrict__ a,
                                  const float* __restrict__ b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const __half x = __float2half_rn(a[i]), y = __float2half_rn(b[i]);
    out[0 * n + i] = __half_as_ushort(x);
    out[1 * n + i] = __half_as_ushort(__hadd(x, y));
    out[2 * n + i] = __half_as_ushort(__hmul(x, y));
    out[3 * n + i] = __half_as_ushort(__hfma(x, y, x));
    const __half2 pair = __floats2half2_rn(a[i], b[i]);
    const float2 back = __half22float2(pair);
    out[4 * n + i] = __half_as_ushort(__float2half_rn(back.x + 1.0f));
    out[5 * n + i] = __half_as_ushort(__high2half(__hadd2(pair, __halves2half2(x, x))));
}

// every half there is -> float
extern "C" __global__ void halves_to_floats(float* __restrict__ out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __half2float(__ushort_as_half((unsigned short)i));
}

// out[6][n]: bits of comparisons of two halves, of either kind
#define OF(k, f) out[k * n + i] = __h##f(x.x, y.x) | __h##f##u(x.x, y.x) << 1 | __hb##f##2(x, y) << 2 | __hb##f##u2(x, y) << 3;
extern "C" __global__ void halves_compared(unsigned* __restrict__ out, const float* __restrict__ a,
                                           const float* __restrict__ b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 >= n)
        return;
    const __half2 x = __floats2half2_rn(a[i], a[i + 1]), y = __floats2half2_rn(b[i], b[i + 1]);
    OF(0, eq) OF(1, ne) OF(2, lt) OF(3, le) OF(4, gt) OF(5, ge)
}
