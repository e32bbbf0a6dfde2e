// Clusters of blocks, on sm_90 and later. The blocks of a cluster run at the same time and can access each other's
// shared memory. Clusters lie along x, so the rank of a block is blockIdx.x modulo the number of blocks in a cluster.
// The host runs blocks one after another, so each block is alone there. Source: PTX ISA, "Cluster of Cooperative Thread
// Arrays", "barrier.cluster", "mapa" and "cp.async.bulk.tensor".
// Needs     lib/tma.cuh (TensorMap, arrive, copy_box)
// Provides  RUN_TOGETHER, sync_cluster, arrive_at, copy_box_to
#ifdef AUTOTUNE_HOST
constexpr bool RUN_TOGETHER = false;
#else
constexpr bool RUN_TOGETHER = true;
#endif

// Waits for all threads of all blocks, except threads that have ended. Afterwards each block sees the barriers that the
// others have published, but no other writes of theirs. The call also reconverges the threads of a warp.
__device__ __forceinline__ void sync_cluster()
{
#ifdef AUTOTUNE_HOST
    __syncthreads();
#else
    asm volatile("barrier.cluster.arrive.relaxed;\n"
                 "barrier.cluster.wait.acquire;"
                 :
                 :
                 : "memory");
#endif
}

// Arrives at the barrier of the block `rank`, which lies at the same address in the shared memory of each block. A
// thread that waits there knows that the reads of this thread before the call are complete. Only threads of this
// thread's own block see its writes: making them visible to other blocks takes hundreds of cycles.
__device__ __forceinline__ void arrive_at(unsigned barrier, int rank)
{
#ifdef AUTOTUNE_HOST
    arrive(barrier);
#else
    asm volatile("{ .reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }"
                 :
                 : "r"(barrier), "r"(rank)
                 : "memory");
#endif
}

// Does what copy_box() does for each block whose rank is a bit of `blocks`. The box goes to the same address in each,
// and its bytes count for the barrier at the same address in each.
__device__ __forceinline__ void copy_box_to(
    unsigned blocks, unsigned to, const TensorMap* map, unsigned barrier, int x, int y, int z, int w)
{
#ifdef AUTOTUNE_HOST
    copy_box(to, map, barrier, x, y, z, w);
#else
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, { %3, %4, %5, %6}], [%2], %7;"
                 :
                 : "r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w),
                   "h"(static_cast<unsigned short>(blocks))
                 : "memory");
#endif
}
