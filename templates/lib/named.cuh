// Barriers of some warps of a block, by number, 1 to 15; n counts the threads of all that arrive or wait, whole warps.
__device__ __forceinline__ void sync_named(int number, int n)
{
#ifdef AUTOTUNE_HOST
    cuda_host_bar_sync(number, n);
#else
    asm volatile("bar.sync %0, %1;" : : "r"(number), "r"(n) : "memory");
#endif
}

// Does not wait.
__device__ __forceinline__ void arrive_named(int number, int n)
{
#ifdef AUTOTUNE_HOST
    cuda_host_bar_arrive(number, n);
#else
    asm volatile("bar.arrive %0, %1;" : : "r"(number), "r"(n) : "memory");
#endif
}
