// Arithmetic of floating-point types of 16 bits: what cuda_fp16.h and cuda_bf16.h declare alike.
#pragma once

// A sum, product or quotient of two is computed in float, whose mantissa has more than twice the bits, and so it is
// rounded once. Of a fused multiply-add the product is exact in double, and so is its sum with c, up to exponents that
// are further apart than a double's mantissa is long.
#define CUDA_HOST_NARROW_OPERATION(T, T2, name, operation)                                                       \
    CUDA_HOST_INLINE T operator operation(T a, T b) { return T(float(a) operation float(b)); }                   \
    CUDA_HOST_INLINE T& operator operation##=(T& a, T b) { return a = a operation b; }                           \
    CUDA_HOST_INLINE T2 operator operation(T2 a, T2 b) { return {a.x operation b.x, a.y operation b.y}; }        \
    CUDA_HOST_INLINE T2& operator operation##=(T2& a, T2 b) { return a = a operation b; }                        \
    CUDA_HOST_INLINE T name(T a, T b) { return a operation b; }                                                  \
    CUDA_HOST_INLINE T name##_rn(T a, T b) { return a operation b; }                                             \
    CUDA_HOST_INLINE T2 name##2(T2 a, T2 b) { return a operation b; }                                            \
    CUDA_HOST_INLINE T2 name##2_rn(T2 a, T2 b) { return a operation b; }

// Never where one of the two is no number, but for ..u and operators; b: of both halves.
#define CUDA_HOST_NARROW_COMPARISON(T, T2, name, operation)                                                      \
    CUDA_HOST_INLINE bool operator operation(T a, T b) { return float(a) operation float(b); }                   \
    CUDA_HOST_NARROW_COMPARED(T, T2, name, a operation b && !isnan(float(a)) && !isnan(float(b)))                \
    CUDA_HOST_NARROW_COMPARED(T, T2, name##u, a operation b || isnan(float(a)) || isnan(float(b)))

#define CUDA_HOST_NARROW_COMPARED(T, T2, name, expression)                                                       \
    CUDA_HOST_INLINE bool __h##name(T a, T b) { return expression; }                                             \
    CUDA_HOST_INLINE T2 __h##name##2(T2 a, T2 b) {                                                               \
        return {T(float(__h##name(a.x, b.x))), T(float(__h##name(a.y, b.y)))};                                   \
    }                                                                                                            \
    CUDA_HOST_INLINE unsigned __h##name##2_mask(T2 a, T2 b) {                                                    \
        return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);                  \
    }                                                                                                            \
    CUDA_HOST_INLINE bool __hb##name##2(T2 a, T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }

#define CUDA_HOST_NARROW_FUNCTION(T, T2, name, expression)                                                       \
    CUDA_HOST_INLINE T h##name(T a) {                                                                            \
        const float v = float(a);                                                                                \
        return T(expression);                                                                                    \
    }                                                                                                            \
    CUDA_HOST_INLINE T2 h2##name(T2 a) { return {h##name(a.x), h##name(a.y)}; }

#define CUDA_HOST_NARROW_CONVERSION(T, name, Integer, integer)                                                   \
    CUDA_HOST_INLINE T __##integer##2##name##_rn(Integer v) { return T(double(v)); }                             \
    CUDA_HOST_INLINE T __##integer##2##name##_rd(Integer v) { return cuda_host::narrow<T>(double(v), FE_DOWNWARD); }   \
    CUDA_HOST_INLINE T __##integer##2##name##_ru(Integer v) { return cuda_host::narrow<T>(double(v), FE_UPWARD); }     \
    CUDA_HOST_INLINE T __##integer##2##name##_rz(Integer v) { return cuda_host::narrow<T>(double(v), FE_TOWARDZERO); } \
    CUDA_HOST_INLINE Integer __##name##2##integer##_rn(T v) { return cuda_host::saturate<Integer>(rintf(float(v))); }  \
    CUDA_HOST_INLINE Integer __##name##2##integer##_rz(T v) { return cuda_host::saturate<Integer>(truncf(float(v))); } \
    CUDA_HOST_INLINE Integer __##name##2##integer##_rd(T v) { return cuda_host::saturate<Integer>(floorf(float(v))); } \
    CUDA_HOST_INLINE Integer __##name##2##integer##_ru(T v) { return cuda_host::saturate<Integer>(ceilf(float(v))); }

// T: the type; name: what its functions call it; T2, name2: two of them.
#define CUDA_HOST_NARROW(T, name, T2, name2)                                                                     \
    struct __attribute__((aligned(4))) T2 {                                                                      \
        T x, y;                                                                                                  \
        T2() = default;                                                                                          \
        T2(T x, T y) : x(x), y(y) {}                                                                             \
    };                                                                                                           \
    CUDA_HOST_INLINE T __float2##name(float v) { return T(v); }                                                  \
    CUDA_HOST_INLINE T __float2##name##_rn(float v) { return T(v); }                                             \
    CUDA_HOST_INLINE T __float2##name##_rd(float v) { return cuda_host::narrow<T>(v, FE_DOWNWARD); }             \
    CUDA_HOST_INLINE T __float2##name##_ru(float v) { return cuda_host::narrow<T>(v, FE_UPWARD); }               \
    CUDA_HOST_INLINE T __float2##name##_rz(float v) { return cuda_host::narrow<T>(v, FE_TOWARDZERO); }           \
    CUDA_HOST_INLINE T __double2##name(double v) { return T(v); }                                                \
    CUDA_HOST_INLINE float __##name##2float(T v) { return float(v); }                                            \
    CUDA_HOST_INLINE T2 __##name##2##name2(T a) { return {a, a}; }                                               \
    CUDA_HOST_INLINE T2 make_##name2(T a, T b) { return {a, b}; }                                                \
    CUDA_HOST_INLINE T2 __floats2##name2##_rn(float a, float b) { return {T(a), T(b)}; }                         \
    CUDA_HOST_INLINE T2 __float2##name2##_rn(float a) { return {T(a), T(a)}; }                                   \
    CUDA_HOST_INLINE T2 __float22##name2##_rn(float2 a) { return {T(a.x), T(a.y)}; }                             \
    CUDA_HOST_INLINE float2 __##name2##2float2(T2 a) { return {float(a.x), float(a.y)}; }                        \
    CUDA_HOST_INLINE T __low2##name(T2 a) { return a.x; }                                                        \
    CUDA_HOST_INLINE T __high2##name(T2 a) { return a.y; }                                                       \
    CUDA_HOST_INLINE T2 __low2##name2(T2 a) { return {a.x, a.x}; }                                               \
    CUDA_HOST_INLINE T2 __high2##name2(T2 a) { return {a.y, a.y}; }                                              \
    CUDA_HOST_INLINE T2 __lows2##name2(T2 a, T2 b) { return {a.x, b.x}; }                                        \
    CUDA_HOST_INLINE T2 __highs2##name2(T2 a, T2 b) { return {a.y, b.y}; }                                       \
    CUDA_HOST_INLINE T2 __lowhigh2highlow(T2 a) { return {a.y, a.x}; }                                           \
    CUDA_HOST_INLINE float __low2float(T2 a) { return float(a.x); }                                              \
    CUDA_HOST_INLINE float __high2float(T2 a) { return float(a.y); }                                             \
    CUDA_HOST_INLINE unsigned short __##name##_as_ushort(T a) { return cuda_host::bits<unsigned short>(a); }     \
    CUDA_HOST_INLINE short __##name##_as_short(T a) { return cuda_host::bits<short>(a); }                        \
    CUDA_HOST_INLINE T __ushort_as_##name(unsigned short a) { return cuda_host::bits<T>(a); }                    \
    CUDA_HOST_INLINE T __short_as_##name(short a) { return cuda_host::bits<T>(a); }                              \
    CUDA_HOST_NARROW_CONVERSION(T, name, int, int)                                                               \
    CUDA_HOST_NARROW_CONVERSION(T, name, unsigned, uint)                                                         \
    CUDA_HOST_NARROW_CONVERSION(T, name, short, short)                                                           \
    CUDA_HOST_NARROW_CONVERSION(T, name, unsigned short, ushort)                                                 \
    CUDA_HOST_NARROW_CONVERSION(T, name, long long, ll)                                                          \
    CUDA_HOST_NARROW_CONVERSION(T, name, unsigned long long, ull)                                                \
    CUDA_HOST_NARROW_OPERATION(T, T2, __hadd, +)                                                                 \
    CUDA_HOST_NARROW_OPERATION(T, T2, __hsub, -)                                                                 \
    CUDA_HOST_NARROW_OPERATION(T, T2, __hmul, *)                                                                 \
    CUDA_HOST_NARROW_OPERATION(T, T2, __hdiv, /)                                                                 \
    CUDA_HOST_NARROW_COMPARISON(T, T2, eq, ==)                                                                   \
    CUDA_HOST_NARROW_COMPARISON(T, T2, ne, !=)                                                                   \
    CUDA_HOST_NARROW_COMPARISON(T, T2, lt, <)                                                                    \
    CUDA_HOST_NARROW_COMPARISON(T, T2, le, <=)                                                                   \
    CUDA_HOST_NARROW_COMPARISON(T, T2, gt, >)                                                                    \
    CUDA_HOST_NARROW_COMPARISON(T, T2, ge, >=)                                                                   \
    CUDA_HOST_INLINE T operator-(T a) { return T(-float(a)); }                                                   \
    CUDA_HOST_INLINE T2 operator-(T2 a) { return {-a.x, -a.y}; }                                                 \
    CUDA_HOST_INLINE T __hneg(T a) { return -a; }                                                                \
    CUDA_HOST_INLINE T2 __hneg2(T2 a) { return -a; }                                                             \
    CUDA_HOST_INLINE T __habs(T a) { return T(fabsf(float(a))); }                                                \
    CUDA_HOST_INLINE T2 __habs2(T2 a) { return {__habs(a.x), __habs(a.y)}; }                                     \
    CUDA_HOST_INLINE T __hmin(T a, T b) { return T(fminf(float(a), float(b))); }                                 \
    CUDA_HOST_INLINE T __hmax(T a, T b) { return T(fmaxf(float(a), float(b))); }                                 \
    CUDA_HOST_INLINE T2 __hmin2(T2 a, T2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }                     \
    CUDA_HOST_INLINE T2 __hmax2(T2 a, T2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                     \
    CUDA_HOST_INLINE bool __hisnan(T a) { return isnan(float(a)); }                                              \
    CUDA_HOST_INLINE int __hisinf(T a) { return isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0; }                 \
    CUDA_HOST_INLINE T __hfma(T a, T b, T c) { return T(double(float(a)) * double(float(b)) + double(float(c))); } \
    CUDA_HOST_INLINE T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }     \
    CUDA_HOST_NARROW_FUNCTION(T, T2, sqrt, sqrtf(v))                                                             \
    CUDA_HOST_NARROW_FUNCTION(T, T2, rsqrt, rsqrtf(v))                                                           \
    CUDA_HOST_NARROW_FUNCTION(T, T2, rcp, 1.0f / v)                                                              \
    CUDA_HOST_NARROW_FUNCTION(T, T2, exp, expf(v))                                                               \
    CUDA_HOST_NARROW_FUNCTION(T, T2, exp2, exp2f(v))                                                             \
    CUDA_HOST_NARROW_FUNCTION(T, T2, exp10, exp10f(v))                                                           \
    CUDA_HOST_NARROW_FUNCTION(T, T2, log, logf(v))                                                               \
    CUDA_HOST_NARROW_FUNCTION(T, T2, log2, log2f(v))                                                             \
    CUDA_HOST_NARROW_FUNCTION(T, T2, log10, log10f(v))                                                           \
    CUDA_HOST_NARROW_FUNCTION(T, T2, sin, sinf(v))                                                               \
    CUDA_HOST_NARROW_FUNCTION(T, T2, cos, cosf(v))                                                               \
    CUDA_HOST_NARROW_FUNCTION(T, T2, floor, floorf(v))                                                           \
    CUDA_HOST_NARROW_FUNCTION(T, T2, ceil, ceilf(v))                                                             \
    CUDA_HOST_NARROW_FUNCTION(T, T2, trunc, truncf(v))                                                           \
    CUDA_HOST_NARROW_FUNCTION(T, T2, rint, rintf(v))
