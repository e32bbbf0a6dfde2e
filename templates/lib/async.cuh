// Starts a copy of 16 bytes from global to shared memory and does not wait for it. Both addresses are multiples of 16.
// With `n`, the copy reads the first n bytes only and writes 0 to the others.
__device__ __forceinline__ void copy_async(void* to, const void* from, int n)
{
#ifdef AUTOTUNE_HOST
    __pipeline_memcpy_async(to, from, 16, 16 - n);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(n)
                 : "memory");
#endif
}

__device__ __forceinline__ void copy_async(void* to, const void* from)
{
#ifdef AUTOTUNE_HOST
    __pipeline_memcpy_async(to, from, 16);
#else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
                 :
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from)
                 : "memory");
#endif
}

// Makes one group of the copies that this thread has started since the last call.
__device__ __forceinline__ void close_group()
{
#ifdef AUTOTUNE_HOST
    __pipeline_commit();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most N of this thread's groups are under way.
template <int N>
__device__ __forceinline__ void wait_for_groups()
{
#ifdef AUTOTUNE_HOST
    __pipeline_wait_prior(N);
#else
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
#endif
}
