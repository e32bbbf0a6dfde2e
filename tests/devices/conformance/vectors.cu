// Vector loads and stores with cache hints; out[i] = (a + b) with its parts reversed.
struct __align__(8) Pair {
    short first;
    int second;
};

extern "C" __global__ void vectors(float4* __restrict__ out, const float4* __restrict__ a, const float2* __restrict__ b,
                                   uint4* __restrict__ words, int n)
{
    static_assert(sizeof(Pair) == 8 && alignof(Pair) == 8, "__align__");
    static_assert(sizeof(float3) == 12 && sizeof(double2) == 16 && sizeof(uchar4) == 4, "vector sizes");
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float4 v = __ldg(a + i);
    const float2 low = __ldcs(b + 2 * i), high = __ldcg(b + 2 * i + 1);
    __stcs(out + i, make_float4(v.w + high.y, v.z + high.x, v.y + low.y, v.x + low.x));
    const uint2 halves = make_uint2(i, i + 1);
    const int3 triple = make_int3(1, 2, 3);
    words[i] = make_uint4(halves.x, halves.y, triple.z, threadIdx.x);
}
