// Copies from global to shared memory that the threads do not wait for, 16 bytes each; both addresses are multiples of
// 16. Of the 16 bytes, `n` are read, and the others become 0.
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

// The copies so far, of this thread, since the last such call: a group.
__device__ __forceinline__ void close_group()
{
#ifdef AUTOTUNE_HOST
    __pipeline_commit();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait until at most N of this thread's groups are under way.
template <int N>
__device__ __forceinline__ void wait_for_groups()
{
#ifdef AUTOTUNE_HOST
    __pipeline_wait_prior(N);
#else
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
#endif
}
