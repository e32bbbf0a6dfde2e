// out[group] = sum over a group's lanes: GROUP lanes fold by shuffles, floats, doubles and 64-bit integers alike.
constexpr int GROUP = 8;

template <class T>
__device__ __forceinline__ T fold(T value)
{
#pragma unroll
    for (int distance = GROUP / 2; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffffu, value, distance, GROUP);
    return value;
}

extern "C" __global__ void __launch_bounds__(128)
reduction(float* floats, double* doubles, unsigned long long* wides, const float* in)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float f = fold(in[i]);
    const double d = fold((double)in[i]);
    const unsigned long long w = fold((unsigned long long)i << 20);
    if (i % GROUP == 0) {
        floats[i / GROUP] = f;
        doubles[i / GROUP] = d;
        wides[i / GROUP] = w;
    }
}
