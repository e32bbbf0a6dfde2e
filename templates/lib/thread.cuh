// Returns threadIdx.x, read again. The compiler cannot tell that the number is the same as before. So it does not
// compute values that depend on it before a loop and keep them in registers or in local memory until they are used.
__device__ __forceinline__ int thread_again()
{
#ifdef AUTOTUNE_HOST
    return threadIdx.x;
#else
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
#endif
}
