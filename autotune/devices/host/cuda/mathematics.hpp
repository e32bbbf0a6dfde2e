// Mathematics. The C library is more accurate than the GPU's fast forms.
#pragma once

namespace cuda_user {
inline namespace {

// A function that a source adds to one of these, such as floorf of a float2, must not hide it.
using ::abs; using ::acos; using ::acosf; using ::acosh; using ::acoshf; using ::asin; using ::asinf; using ::asinh;
using ::asinhf; using ::atan; using ::atan2; using ::atan2f; using ::atanf; using ::atanh; using ::atanhf;
using ::cbrt; using ::cbrtf; using ::ceil; using ::ceilf; using ::copysign; using ::copysignf; using ::cos;
using ::cosf; using ::cosh; using ::coshf; using ::erf; using ::erfc; using ::erfcf; using ::erff; using ::exp;
using ::exp10; using ::exp10f; using ::exp2; using ::exp2f; using ::expf; using ::expm1; using ::expm1f; using ::fabs;
using ::fabsf; using ::fdim; using ::fdimf; using ::floor; using ::floorf; using ::fma; using ::fmaf; using ::fmax;
using ::fmaxf; using ::fmin; using ::fminf; using ::fmod; using ::fmodf; using ::frexp; using ::frexpf; using ::hypot;
using ::hypotf; using ::ilogb; using ::ilogbf; using ::isfinite; using ::isinf; using ::isnan; using ::labs;
using ::ldexp; using ::ldexpf; using ::lgamma; using ::lgammaf; using ::llabs; using ::llrint; using ::llrintf;
using ::llround; using ::llroundf; using ::log; using ::log10; using ::log10f; using ::log1p; using ::log1pf;
using ::log2; using ::log2f; using ::logb; using ::logbf; using ::logf; using ::lrint; using ::lrintf; using ::lround;
using ::lroundf; using ::modf; using ::modff; using ::nearbyint; using ::nearbyintf; using ::nextafter;
using ::nextafterf; using ::pow; using ::powf; using ::remainder; using ::remainderf; using ::remquo; using ::remquof;
using ::rint; using ::rintf; using ::round; using ::roundf; using ::scalbln; using ::scalblnf; using ::scalbn;
using ::scalbnf; using ::signbit; using ::sin; using ::sincos; using ::sincosf; using ::sinf; using ::sinh;
using ::sinhf; using ::sqrt; using ::sqrtf; using ::tan; using ::tanf; using ::tanh; using ::tanhf; using ::tgamma;
using ::tgammaf; using ::trunc; using ::truncf;

CUDA_HOST_INLINE float rsqrtf(float x) { return float(1.0 / sqrt(double(x))); }
CUDA_HOST_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
CUDA_HOST_INLINE float rsqrt(float x) { return rsqrtf(x); }
CUDA_HOST_INLINE float rcbrtf(float x) { return float(1.0 / cbrt(double(x))); }
CUDA_HOST_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
CUDA_HOST_INLINE float rhypotf(float x, float y) { return float(1.0 / hypot(double(x), double(y))); }
CUDA_HOST_INLINE double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
CUDA_HOST_INLINE double norm3d(double x, double y, double z) { return std::hypot(x, y, z); }
CUDA_HOST_INLINE float norm3df(float x, float y, float z) { return std::hypot(x, y, z); }
CUDA_HOST_INLINE float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
CUDA_HOST_INLINE double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
CUDA_HOST_INLINE double norm4d(double x, double y, double z, double w) { return hypot(norm3d(x, y, z), w); }
CUDA_HOST_INLINE float norm4df(float x, float y, float z, float w) { return hypotf(norm3df(x, y, z), w); }
CUDA_HOST_INLINE double rnorm4d(double x, double y, double z, double w) { return 1.0 / norm4d(x, y, z, w); }
CUDA_HOST_INLINE float rnorm4df(float x, float y, float z, float w) { return 1.0f / norm4df(x, y, z, w); }
CUDA_HOST_INLINE double norm(int n, const double* a) {
    double length = 0.0;
    for (int i = 0; i < n; i++) length = hypot(length, a[i]);
    return length;
}
CUDA_HOST_INLINE float normf(int n, const float* a) {
    double length = 0.0;
    for (int i = 0; i < n; i++) length = hypot(length, double(a[i]));
    return float(length);
}
CUDA_HOST_INLINE double rnorm(int n, const double* a) { return 1.0 / norm(n, a); }
CUDA_HOST_INLINE float rnormf(int n, const float* a) { return 1.0f / normf(n, a); }
CUDA_HOST_INLINE float normcdff(float x) { return float(0.5 * erfc(-double(x) * 0.70710678118654752440)); }
CUDA_HOST_INLINE double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
CUDA_HOST_INLINE void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
CUDA_HOST_INLINE float fdividef(float a, float b) { return a / b; }

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

CUDA_HOST_INLINE float __sinf(float x) { return float(sin(double(x))); }
CUDA_HOST_INLINE float __cosf(float x) { return float(cos(double(x))); }
CUDA_HOST_INLINE float __tanf(float x) { return float(tan(double(x))); }
CUDA_HOST_INLINE float __expf(float x) { return expf(x); }
CUDA_HOST_INLINE float __exp10f(float x) { return exp10f(x); }
CUDA_HOST_INLINE float __logf(float x) { return logf(x); }
CUDA_HOST_INLINE float __log2f(float x) { return log2f(x); }
CUDA_HOST_INLINE float __log10f(float x) { return log10f(x); }
CUDA_HOST_INLINE float __powf(float x, float y) { return powf(x, y); }
CUDA_HOST_INLINE void __sincosf(float x, float* sine, float* cosine) {
    *sine = __sinf(x);
    *cosine = __cosf(x);
}
CUDA_HOST_INLINE float __fdividef(float a, float b) { return a / b; }
CUDA_HOST_INLINE float __saturatef(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }
CUDA_HOST_INLINE float __frsqrt_rn(float a) { return rsqrtf(a); }

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
CUDA_HOST_INLINE double __dsub_rn(double a, double b) { return a - b; }
CUDA_HOST_INLINE double __ddiv_rn(double a, double b) { return a / b; }
CUDA_HOST_INLINE double __drcp_rn(double a) { return 1.0 / a; }
CUDA_HOST_INLINE double __dsqrt_rn(double a) { return sqrt(a); }

}  // namespace
}  // namespace cuda_user
