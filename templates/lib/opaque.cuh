// Hides where a number came from: it stays in its register, because the compiler cannot compute it again from others
// wherever it is used.
template <class Number>
__device__ __forceinline__ Number opaque(Number number)
{
#ifndef AUTOTUNE_HOST
    asm volatile("" : "+r"(number));
#endif
    return number;
}
