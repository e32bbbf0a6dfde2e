// Copies of boxes of an array to shared memory by the tensor memory accelerator of sm_90 and later, and barriers in
// shared memory that wait for these copies. One thread starts a copy, and the data does not pass through registers.
// The host simulates both. Source: PTX ISA, "Tensors" and "mbarrier".
struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

__device__ __forceinline__ unsigned shared_address(const void* p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ unsigned char* shared_pointer(unsigned address)
{
    return static_cast<unsigned char*>(__cvta_shared_to_generic(address));
}

// Initialises a barrier. A phase of it is over when n_threads threads and all expected bytes have arrived.
__device__ __forceinline__ void init_barrier(unsigned barrier, int n_threads)
{
#ifdef AUTOTUNE_HOST
    cuda_host_init_barrier(barrier, n_threads);
#else
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(n_threads) : "memory");
#endif
}

// Makes the barriers that this thread has initialised visible to copies and to other blocks of its cluster.
__device__ __forceinline__ void publish_barriers()
{
#ifndef AUTOTUNE_HOST
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#endif
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
#ifdef AUTOTUNE_HOST
    cuda_host_arrive(barrier);
#else
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
#endif
}

__device__ __forceinline__ void arrive_and_expect(unsigned barrier, int n_bytes)
{
#ifdef AUTOTUNE_HOST
    cuda_host_arrive(barrier, n_bytes);
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(n_bytes) : "memory");
#endif
}

// Waits until the barrier's phase of the given parity is over. Phases alternate: the first has parity 0, the next
// parity 1. A new barrier counts as past a phase of parity 1.
__device__ __forceinline__ void wait(unsigned barrier, unsigned parity)
{
#ifdef AUTOTUNE_HOST
    cuda_host_wait(barrier, parity);
#else
    unsigned is_over;
    do {
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(is_over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!is_over);
#endif
}

// Makes this thread's earlier writes to shared memory visible to later copies and tensor-core products.
__device__ __forceinline__ void publish_writes()
{
#ifndef AUTOTUNE_HOST
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
#endif
}

// Starts the copy of the box that begins at these coordinates, fastest axis first. Its bytes count for the barrier.
__device__ __forceinline__ void copy_box(unsigned to, const TensorMap* map, unsigned barrier, int x, int y)
{
#ifdef AUTOTUNE_HOST
    cuda_host_copy(to, map, barrier, {x, y});
#else
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, { %3, %4}], [%2];"
                 :
                 : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y)
                 : "memory");
#endif
}

__device__ __forceinline__ void copy_box(
    unsigned to, const TensorMap* map, unsigned barrier, int x, int y, int z, int w)
{
#ifdef AUTOTUNE_HOST
    cuda_host_copy(to, map, barrier, {x, y, z, w});
#else
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                 "[%1, { %3, %4, %5, %6}], [%2];"
                 :
                 : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
#endif
}
