// The calling thread's number, read again. The compiler does not know that it is the same: it does not compute what
// follows from it before a loop, and keep it in registers, or in local memory, until it is used.
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
