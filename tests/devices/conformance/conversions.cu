// Floats to integers in four roundings, saturated; and bits that only change their type.
extern "C" __global__ void conversions(int* __restrict__ out, const float* __restrict__ in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float v = in[i];
    out[0 * n + i] = __float2int_rn(v);
    out[1 * n + i] = __float2int_rz(v);
    out[2 * n + i] = __float2int_rd(v);
    out[3 * n + i] = __float2int_ru(v);
    out[4 * n + i] = (int)__float2uint_rn(v);
    out[5 * n + i] = __float_as_int(v);
    out[6 * n + i] = (int)__float_as_uint(__uint_as_float(__float_as_uint(v)));
    out[7 * n + i] = __double2int_rn((double)v * 0.5);
}
