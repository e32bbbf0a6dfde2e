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
CUDA_HOST_NARROW(__half, half, __half2, half2)
typedef __half half;
typedef __half2 half2;

CUDA_HOST_INLINE __half2 __halves2half2(__half a, __half b) { return {a, b}; }
