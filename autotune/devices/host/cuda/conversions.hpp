// Bit casts and conversions.
#pragma once

namespace cuda_host {

template <class To, class From>
CUDA_HOST_INLINE To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    ::memcpy(&to, &from, sizeof to);
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

namespace cuda_user {
inline namespace {

CUDA_HOST_INLINE int __float_as_int(float v) { return cuda_host::bits<int>(v); }
CUDA_HOST_INLINE unsigned __float_as_uint(float v) { return cuda_host::bits<unsigned>(v); }
CUDA_HOST_INLINE float __int_as_float(int v) { return cuda_host::bits<float>(v); }
CUDA_HOST_INLINE float __uint_as_float(unsigned v) { return cuda_host::bits<float>(v); }
CUDA_HOST_INLINE int __double2hiint(double v) { return int(cuda_host::bits<uint64_t>(v) >> 32); }
CUDA_HOST_INLINE int __double2loint(double v) { return int(cuda_host::bits<uint64_t>(v)); }
CUDA_HOST_INLINE double __hiloint2double(int high, int low) {
    return cuda_host::bits<double>(uint64_t(unsigned(high)) << 32 | unsigned(low));
}
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

}  // namespace
}  // namespace cuda_user
