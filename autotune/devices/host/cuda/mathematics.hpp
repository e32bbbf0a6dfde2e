// Bit casts, conversions and mathematics. The C library is more accurate than the GPU's fast forms.
#pragma once

namespace cuda_host {

template <class To, class From>
CUDA_HOST_INLINE To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// cvt saturates. NaN becomes 0 where 32 bits become 32 bits, otherwise only the highest bit is set (PTX ISA, cvt).
template <class To, class From>
CUDA_HOST_INLINE To saturate(From from) {
    const double v = double(from);
    constexpr bool is_signed = std::is_signed<To>::value;
    constexpr int n_bits = 8 * sizeof(To) - is_signed;
    const double end = n_bits < 64 ? double(uint64_t(1) << (n_bits % 64)) : 18446744073709551616.0;
    constexpr To highest = To(~uint64_t(0) >> (64 - n_bits));
    if (v != v) return sizeof(To) == 4 && sizeof(From) == 4 ? To(0) : To(uint64_t(1) << (8 * sizeof(To) - 1));
    if (v >= end) return highest;
    if (v <= (is_signed ? -end : 0.0)) return is_signed ? To(-highest - 1) : To(0);
    return To(v);
}

}  // namespace cuda_host

CUDA_HOST_INLINE int __float_as_int(float v) { return cuda_host::bits<int>(v); }
CUDA_HOST_INLINE unsigned __float_as_uint(float v) { return cuda_host::bits<unsigned>(v); }
CUDA_HOST_INLINE float __int_as_float(int v) { return cuda_host::bits<float>(v); }
CUDA_HOST_INLINE float __uint_as_float(unsigned v) { return cuda_host::bits<float>(v); }
CUDA_HOST_INLINE long long __double_as_longlong(double v) { return cuda_host::bits<long long>(v); }
CUDA_HOST_INLINE double __longlong_as_double(long long v) { return cuda_host::bits<double>(v); }

#define CUDA_HOST_CONVERT(from, From, to, To)                                                                     \
    CUDA_HOST_INLINE To __##from##2##to##_rn(From v) { return cuda_host::saturate<To>(From(rint(v))); }         \
    CUDA_HOST_INLINE To __##from##2##to##_rz(From v) { return cuda_host::saturate<To>(From(trunc(v))); }        \
    CUDA_HOST_INLINE To __##from##2##to##_rd(From v) { return cuda_host::saturate<To>(From(floor(v))); }        \
    CUDA_HOST_INLINE To __##from##2##to##_ru(From v) { return cuda_host::saturate<To>(From(ceil(v))); }
CUDA_HOST_CONVERT(float, float, int, int)
CUDA_HOST_CONVERT(float, float, uint, unsigned)
CUDA_HOST_CONVERT(float, float, ll, long long)
CUDA_HOST_CONVERT(float, float, ull, unsigned long long)
CUDA_HOST_CONVERT(double, double, int, int)
CUDA_HOST_CONVERT(double, double, uint, unsigned)
CUDA_HOST_CONVERT(double, double, ll, long long)
CUDA_HOST_CONVERT(double, double, ull, unsigned long long)
CUDA_HOST_INLINE float __int2float_rn(int v) { return float(v); }
CUDA_HOST_INLINE float __uint2float_rn(unsigned v) { return float(v); }
CUDA_HOST_INLINE float __ll2float_rn(long long v) { return float(v); }
CUDA_HOST_INLINE float __ull2float_rn(unsigned long long v) { return float(v); }
CUDA_HOST_INLINE double __int2double_rn(int v) { return v; }
CUDA_HOST_INLINE double __uint2double_rn(unsigned v) { return v; }
CUDA_HOST_INLINE double __ll2double_rn(long long v) { return double(v); }
CUDA_HOST_INLINE double __ull2double_rn(unsigned long long v) { return double(v); }
CUDA_HOST_INLINE float __double2float_rn(double v) { return float(v); }

CUDA_HOST_INLINE float rsqrtf(float x) { return float(1.0 / sqrt(double(x))); }
CUDA_HOST_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }

// sin and cos of pi x, exact at multiples of 1/2.
CUDA_HOST_INLINE void sincospi(double x, double* sine, double* cosine) {
    const double turn = x - 2.0 * rint(0.5 * x);  // [-1, 1]
    const int quarter = int(rint(2.0 * turn));
    const double angle = (turn - 0.5 * quarter) * 3.14159265358979323846;
    const double s = sin(angle), c = cos(angle);
    const double sines[4] = {s, c, -s, -c}, cosines[4] = {c, -s, -c, s};
    *sine = sines[quarter & 3];
    *cosine = cosines[quarter & 3];
}
CUDA_HOST_INLINE void sincospif(float x, float* sine, float* cosine) {
    double s, c;
    sincospi(x, &s, &c);
    *sine = float(s);
    *cosine = float(c);
}
CUDA_HOST_INLINE double sinpi(double x) {
    double s, c;
    sincospi(x, &s, &c);
    return s;
}
CUDA_HOST_INLINE double cospi(double x) {
    double s, c;
    sincospi(x, &s, &c);
    return c;
}
CUDA_HOST_INLINE float sinpif(float x) { return float(sinpi(double(x))); }
CUDA_HOST_INLINE float cospif(float x) { return float(cospi(double(x))); }

// The C library declares names like these itself, so the fast forms are macros.
#define __sincosf cuda_host_sincosf
#define __sinf(x) float(sin(double(x)))
#define __cosf(x) float(cos(double(x)))
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __powf(x, y) powf(x, y)
CUDA_HOST_INLINE void cuda_host_sincosf(float x, float* sine, float* cosine) {
    *sine = __sinf(x);
    *cosine = __cosf(x);
}
CUDA_HOST_INLINE float __fdividef(float a, float b) { return a / b; }
CUDA_HOST_INLINE float __saturatef(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }

// Rounded once, never contracted with a neighbour: the shim is compiled with -ffp-contract=off.
CUDA_HOST_INLINE float __fadd_rn(float a, float b) { return a + b; }
CUDA_HOST_INLINE float __fsub_rn(float a, float b) { return a - b; }
CUDA_HOST_INLINE float __fmul_rn(float a, float b) { return a * b; }
CUDA_HOST_INLINE float __fdiv_rn(float a, float b) { return a / b; }
CUDA_HOST_INLINE float __frcp_rn(float a) { return 1.0f / a; }
CUDA_HOST_INLINE float __fsqrt_rn(float a) { return sqrtf(a); }
CUDA_HOST_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
CUDA_HOST_INLINE double __dadd_rn(double a, double b) { return a + b; }
CUDA_HOST_INLINE double __dmul_rn(double a, double b) { return a * b; }
CUDA_HOST_INLINE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
