// Half precision: IEEE binary16, rounded to nearest even.
#pragma once

struct __attribute__((aligned(2))) __half {
    _Float16 v;
    __half() = default;
    __half(float f) : v(_Float16(f)) {}
    __half(double f) : v(_Float16(f)) {}
    __half(int i) : v(_Float16(i)) {}
    operator float() const { return float(v); }
};
struct __attribute__((aligned(4))) __half2 {
    __half x, y;
};
typedef __half half;
typedef __half2 half2;

CUDA_HOST_INLINE __half __float2half_rn(float f) { return __half(f); }
CUDA_HOST_INLINE __half __float2half(float f) { return __half(f); }
CUDA_HOST_INLINE __half __int2half_rn(int i) { return __half(i); }
CUDA_HOST_INLINE float __half2float(__half h) { return float(h.v); }
CUDA_HOST_INLINE __half2 __halves2half2(__half a, __half b) { return {a, b}; }
CUDA_HOST_INLINE __half2 make_half2(__half a, __half b) { return {a, b}; }
CUDA_HOST_INLINE __half2 __half2half2(__half a) { return {a, a}; }
CUDA_HOST_INLINE __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
CUDA_HOST_INLINE __half2 __float22half2_rn(float2 f) { return {__half(f.x), __half(f.y)}; }
CUDA_HOST_INLINE __half2 __float2half2_rn(float a) { return {__half(a), __half(a)}; }
CUDA_HOST_INLINE float2 __half22float2(__half2 h) { return {float(h.x), float(h.y)}; }
CUDA_HOST_INLINE __half __low2half(__half2 h) { return h.x; }
CUDA_HOST_INLINE __half __high2half(__half2 h) { return h.y; }
CUDA_HOST_INLINE float __low2float(__half2 h) { return float(h.x); }
CUDA_HOST_INLINE float __high2float(__half2 h) { return float(h.y); }
CUDA_HOST_INLINE unsigned short __half_as_ushort(__half h) { return cuda_host::bits<unsigned short>(h.v); }
CUDA_HOST_INLINE __half __ushort_as_half(unsigned short u) {
    __half h;
    h.v = cuda_host::bits<_Float16>(u);
    return h;
}

// A sum or product of two halves is exact in float (the quotient is not needed), so it is rounded once.
#define CUDA_HOST_HALF(name, operation)                                                             \
    CUDA_HOST_INLINE __half name(__half a, __half b) { return __half(float(a.v) operation float(b.v)); } \
    CUDA_HOST_INLINE __half2 name##2(__half2 a, __half2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
CUDA_HOST_HALF(__hadd, +)
CUDA_HOST_HALF(__hsub, -)
CUDA_HOST_HALF(__hmul, *)
// The product is exact in double, and so is its sum with c, up to exponents 53 bits apart.
CUDA_HOST_INLINE __half __hfma(__half a, __half b, __half c) {
    return __half(double(float(a.v)) * double(float(b.v)) + double(float(c.v)));
}
CUDA_HOST_INLINE __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
