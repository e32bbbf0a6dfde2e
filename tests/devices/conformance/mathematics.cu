// out[10][n] of x, y.
extern "C" __global__ void mathematics(float* __restrict__ out, const float* __restrict__ x,
                                       const float* __restrict__ y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float s, c;
    sincospif(x[i], &s, &c);
    out[0 * n + i] = s;
    out[1 * n + i] = c;
    out[2 * n + i] = fmaf(x[i], y[i], 1.0f);
    out[3 * n + i] = __fmaf_rn(x[i], y[i], -1.0f);
    out[4 * n + i] = rsqrtf(fabsf(x[i]) + 1.0f);
    out[5 * n + i] = sqrtf(fabsf(x[i]));
    out[6 * n + i] = rintf(x[i]);
    out[7 * n + i] = max(x[i], y[i]);
    double exact_s, exact_c;
    sincospi((double)y[i], &exact_s, &exact_c);
    out[8 * n + i] = (float)exact_s;
    out[9 * n + i] = (float)(exact_c * exact_c + exact_s * exact_s);
}
