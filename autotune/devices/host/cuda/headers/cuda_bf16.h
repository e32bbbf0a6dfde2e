// bfloat16: the upper half of a float, rounded to nearest even.
#pragma once

struct __attribute__((aligned(2))) __nv_bfloat16 {
    unsigned short upper;
    __nv_bfloat16() = default;
    __nv_bfloat16(float f) {
        const unsigned word = cuda_host::bits<unsigned>(f);
        upper = f != f ? 0x7fff : (unsigned short)((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
    // The float that is rounded has an odd last bit if it is inexact, so that the second rounding sees on which side it is.
    __nv_bfloat16(double d) {
        const float nearest = float(d);
        unsigned word = cuda_host::bits<unsigned>(nearest);
        const double rest = d - double(nearest);
        if (rest != 0 && isfinite(nearest)) {
            if ((rest < 0) != (nearest < 0)) word--;
            word |= 1;
        }
        *this = __nv_bfloat16(cuda_host::bits<float>(word));
    }
    __nv_bfloat16(int i) : __nv_bfloat16(double(i)) {}
    operator float() const { return cuda_host::bits<float>(unsigned(upper) << 16); }
};
CUDA_HOST_NARROW(__nv_bfloat16, bfloat16, __nv_bfloat162, bfloat162)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

CUDA_HOST_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
