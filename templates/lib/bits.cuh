// Returns (value & mask) ^ pattern in one instruction; a compiler that sees two constants uses two instructions.
__device__ __forceinline__ unsigned and_xor(unsigned value, unsigned mask, unsigned pattern)
{
#ifdef AUTOTUNE_HOST
    return (value & mask) ^ pattern;
#else
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(value), "r"(mask), "r"(pattern));
    return result;
#endif
}
