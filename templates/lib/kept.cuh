// Keeps a number in a register: the compiler must not make it again from others wherever it is used.
template <class Number>
__device__ __forceinline__ Number kept(Number number)
{
#ifndef AUTOTUNE_HOST
    asm volatile("" : "+r"(number));
#endif
    return number;
}
