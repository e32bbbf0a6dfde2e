// Complex numbers of two floats or doubles.
#pragma once

#define CUDA_HOST_COMPLEX(T, T2, Name, f)                                                                        \
    CUDA_HOST_INLINE T2 make_cu##Name(T re, T im) { return make_##T2(re, im); }                                  \
    CUDA_HOST_INLINE T cuCreal##f(T2 a) { return a.x; }                                                          \
    CUDA_HOST_INLINE T cuCimag##f(T2 a) { return a.y; }                                                          \
    CUDA_HOST_INLINE T2 cuConj##f(T2 a) { return make_##T2(a.x, -a.y); }                                         \
    CUDA_HOST_INLINE T2 cuCadd##f(T2 a, T2 b) { return make_##T2(a.x + b.x, a.y + b.y); }                        \
    CUDA_HOST_INLINE T2 cuCsub##f(T2 a, T2 b) { return make_##T2(a.x - b.x, a.y - b.y); }                        \
    CUDA_HOST_INLINE T2 cuCmul##f(T2 a, T2 b) { return make_##T2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); } \
    CUDA_HOST_INLINE T2 cuCdiv##f(T2 a, T2 b) {                                                                  \
        const T scale = T(1) / (fabs(b.x) + fabs(b.y));                                                          \
        const T2 n = {a.x * scale, a.y * scale}, d = {b.x * scale, b.y * scale};                                 \
        const T square = T(1) / (d.x * d.x + d.y * d.y);                                                         \
        return make_##T2((n.x * d.x + n.y * d.y) * square, (n.y * d.x - n.x * d.y) * square);                    \
    }                                                                                                            \
    CUDA_HOST_INLINE T cuCabs##f(T2 a) { return hypot(a.x, a.y); }                                               \
    CUDA_HOST_INLINE T2 cuCfma##f(T2 a, T2 b, T2 c) {                                                            \
        return make_##T2(a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x);                              \
    }

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;
CUDA_HOST_COMPLEX(float, float2, FloatComplex, f)
CUDA_HOST_COMPLEX(double, double2, DoubleComplex, )

CUDA_HOST_INLINE cuComplex make_cuComplex(float re, float im) { return make_float2(re, im); }
CUDA_HOST_INLINE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return make_double2(a.x, a.y); }
CUDA_HOST_INLINE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) { return make_float2(float(a.x), float(a.y)); }
