// An output against its reference, in one pass over both: what every trial's verdict rests on.

struct Found {
    unsigned long long n_bad;      // elements beyond the tolerance, or bytes that differ
    unsigned long long max_error;  // bits of a double, which order as its value does: it is not negative
    double sum_error2;
};

__device__ inline float value_of(float x) { return x; }
__device__ inline double value_of(double x) { return x; }
__device__ inline double value_of(signed char x) { return x; }
__device__ inline double value_of(unsigned char x) { return x; }
__device__ inline double value_of(short x) { return x; }
__device__ inline double value_of(unsigned short x) { return x; }
__device__ inline double value_of(int x) { return x; }
__device__ inline double value_of(unsigned x) { return x; }

struct Half {
    unsigned short bits;
};

__device__ inline double value_of(Half x)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
    return value;
}

// got [n][PARTS] (PARTS = 2: complex) against want: |got - want| <= allowed + rtol |want|; a NaN is wrong.
template <int PARTS, typename T, typename W>
__device__ void compare(const T* got, const W* want, size_t n, double allowed, double rtol, Found* found)
{
    unsigned long long n_bad = 0;
    double max_error = 0.0, sum_error2 = 0.0;
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n;
         i += static_cast<size_t>(gridDim.x) * blockDim.x) {
        double error2 = 0.0, size2 = 0.0;
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            const double expected = value_of(want[PARTS * i + part]);
            const double error = value_of(got[PARTS * i + part]) - expected;
            error2 += error * error;
            size2 += expected * expected;
        }
        if (isnan(error2))
            error2 = __longlong_as_double(0x7ff0000000000000LL);  // infinite
        const double error = sqrt(error2);
        n_bad += !(error <= allowed + rtol * sqrt(size2));
        max_error = fmax(max_error, error);
        sum_error2 += error2;
    }
    for (int step = 16; step > 0; step /= 2) {  // over the warp: all its threads are here
        n_bad += __shfl_down_sync(0xffffffffu, n_bad, step);
        max_error = fmax(max_error, __shfl_down_sync(0xffffffffu, max_error, step));
        sum_error2 += __shfl_down_sync(0xffffffffu, sum_error2, step);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&found->n_bad, n_bad);
        atomicMax(&found->max_error, static_cast<unsigned long long>(__double_as_longlong(max_error)));
        atomicAdd(&found->sum_error2, sum_error2);
    }
}

// For each type of output: against a reference in doubles, and against another output of its own type.
#define COMPARE(TYPE, T, PARTS)                                                                                   \
    extern "C" __global__ void compare_##TYPE(const T* got, const double* want, size_t n, double allowed,         \
                                              double rtol, Found* found)                                         \
    {                                                                                                            \
        compare<PARTS>(got, want, n, allowed, rtol, found);                                                      \
    }                                                                                                            \
    extern "C" __global__ void compare_like_##TYPE(const T* got, const T* want, size_t n, double allowed,         \
                                                   double rtol, Found* found)                                    \
    {                                                                                                            \
        compare<PARTS>(got, want, n, allowed, rtol, found);                                                      \
    }

// Counts the bytes that differ. Both start at a multiple of 16; n is in bytes.
extern "C" __global__ void differ(const unsigned char* a, const unsigned char* b, size_t n, Found* found)
{
    unsigned long long n_bad = 0;
    const size_t first = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = first; i < n / 16; i += stride) {
        const uint4 x = reinterpret_cast<const uint4*>(a)[i], y = reinterpret_cast<const uint4*>(b)[i];
        n_bad += ((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) != 0;
    }
    for (size_t i = n / 16 * 16 + first; i < n; i += stride)
        n_bad += a[i] != b[i];
    if (n_bad)
        atomicAdd(&found->n_bad, n_bad);
}

// Writes the signed nibbles of n bytes, the low one first.
extern "C" __global__ void nibbles(const signed char* bytes, size_t n, signed char* parts)
{
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n;
         i += static_cast<size_t>(gridDim.x) * blockDim.x) {
        parts[2 * i] = static_cast<signed char>(bytes[i] << 4) >> 4;
        parts[2 * i + 1] = bytes[i] >> 4;
    }
}

// Counts the pieces of memory that are no canaries, before byte `start` and from byte `end` on; n is in bytes. Memory
// starts at a multiple of 16.
extern "C" __global__ void changed(const unsigned char* memory, size_t start, size_t end, size_t n, unsigned canaries,
                                   Found* found)
{
    unsigned long long n_bad = 0;
    const size_t first = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = first; i < start / 16; i += stride) {
        const uint4 x = reinterpret_cast<const uint4*>(memory)[i];
        n_bad += ((x.x ^ canaries) | (x.y ^ canaries) | (x.z ^ canaries) | (x.w ^ canaries)) != 0;
    }
    for (size_t i = start / 16 * 16 + first; i < start; i += stride)
        n_bad += memory[i] != (canaries & 255);
    for (size_t i = end + first; i < n; i += stride)
        n_bad += memory[i] != (canaries & 255);
    if (n_bad)
        atomicAdd(&found->n_bad, n_bad);
}
