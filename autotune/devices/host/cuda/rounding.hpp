// Operations that round down, up or towards zero: __fadd_rd, __fmaf_ru, __int2float_rz and the like.
#pragma once

namespace cuda_host {

struct Rounding {
    int before = std::fegetround();
    explicit Rounding(int mode) { std::fesetround(mode); }
    ~Rounding() { std::fesetround(before); }
};

template <typename T>
inline T not_before(T v) {  // the compiler does not compute with it before the mode is set
    asm volatile("" : "+m"(v));
    return v;
}

// The number of 16 bits next to `v`, in the mode's direction: the nearest one, or its neighbour.
template <typename T>
inline T narrow(double v, int mode) {
    T nearest = T(v);
    const double is = double(float(nearest));
    const bool is_above = is > v, is_below = is < v;
    if (mode == FE_DOWNWARD ? !is_above : mode == FE_UPWARD ? !is_below : std::fabs(is) <= std::fabs(v)) return nearest;
    const bool grows = mode == FE_TOWARDZERO ? false : (mode == FE_UPWARD) == (v > 0);
    uint16_t digits = bits<uint16_t>(nearest);
    if (!(digits & 0x7fff)) digits = v < 0 ? 0x8000 : 0;
    return bits<T>(uint16_t(grows ? digits + 1 : digits - 1));
}

}  // namespace cuda_host

namespace cuda_user {
inline namespace {

#define CUDA_HOST_ROUNDED_1(name, From, To, MODE, value) \
    CUDA_HOST_INLINE To name(From of) {                  \
        const cuda_host::Rounding rounding(MODE);        \
        const From a = cuda_host::not_before(of);        \
        const volatile To result = value;                \
        return result;                                   \
    }
#define CUDA_HOST_ROUNDED_3(name, T, MODE, value)                           \
    CUDA_HOST_INLINE T name(T of, T and_of, T last = 0) {                   \
        const cuda_host::Rounding rounding(MODE);                           \
        const T a = cuda_host::not_before(of), b = cuda_host::not_before(and_of); \
        [[maybe_unused]] const T c = cuda_host::not_before(last);           \
        const volatile T result = value;                                    \
        return result;                                                      \
    }
#define CUDA_HOST_ROUNDED(mode, MODE)                                                       \
    CUDA_HOST_ROUNDED_3(__fadd_##mode, float, MODE, a + b)                                  \
    CUDA_HOST_ROUNDED_3(__fsub_##mode, float, MODE, a - b)                                  \
    CUDA_HOST_ROUNDED_3(__fmul_##mode, float, MODE, a* b)                                   \
    CUDA_HOST_ROUNDED_3(__fdiv_##mode, float, MODE, a / b)                                  \
    CUDA_HOST_ROUNDED_3(__fmaf_##mode, float, MODE, fmaf(a, b, c))                          \
    CUDA_HOST_ROUNDED_3(__dadd_##mode, double, MODE, a + b)                                 \
    CUDA_HOST_ROUNDED_3(__dsub_##mode, double, MODE, a - b)                                 \
    CUDA_HOST_ROUNDED_3(__dmul_##mode, double, MODE, a* b)                                  \
    CUDA_HOST_ROUNDED_3(__ddiv_##mode, double, MODE, a / b)                                 \
    CUDA_HOST_ROUNDED_3(__fma_##mode, double, MODE, fma(a, b, c))                           \
    CUDA_HOST_ROUNDED_1(__frcp_##mode, float, float, MODE, 1 / a)                           \
    CUDA_HOST_ROUNDED_1(__fsqrt_##mode, float, float, MODE, sqrtf(a))                       \
    CUDA_HOST_ROUNDED_1(__drcp_##mode, double, double, MODE, 1 / a)                         \
    CUDA_HOST_ROUNDED_1(__dsqrt_##mode, double, double, MODE, sqrt(a))                      \
    CUDA_HOST_ROUNDED_1(__double2float_##mode, double, float, MODE, float(a))               \
    CUDA_HOST_ROUNDED_1(__int2float_##mode, int, float, MODE, float(a))                     \
    CUDA_HOST_ROUNDED_1(__uint2float_##mode, unsigned, float, MODE, float(a))               \
    CUDA_HOST_ROUNDED_1(__ll2float_##mode, long long, float, MODE, float(a))                \
    CUDA_HOST_ROUNDED_1(__ull2float_##mode, unsigned long long, float, MODE, float(a))      \
    CUDA_HOST_ROUNDED_1(__ll2double_##mode, long long, double, MODE, double(a))             \
    CUDA_HOST_ROUNDED_1(__ull2double_##mode, unsigned long long, double, MODE, double(a))
CUDA_HOST_ROUNDED(rd, FE_DOWNWARD)
CUDA_HOST_ROUNDED(ru, FE_UPWARD)
CUDA_HOST_ROUNDED(rz, FE_TOWARDZERO)

}  // namespace
}  // namespace cuda_user
