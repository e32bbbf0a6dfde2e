// Hides the origin of a number from the compiler, which then keeps it in a register instead of computing it again at
// each use.
template <class Number>
__device__ __forceinline__ Number opaque(Number number)
{
#ifndef AUTOTUNE_HOST
    asm volatile("" : "+r"(number));
#endif
    return number;
}
