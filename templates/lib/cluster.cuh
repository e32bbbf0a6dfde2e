// Clusters of blocks, of sm_90 and later: blocks that run at the same time, and reach each other's shared memory. A
// block is known by its rank, blockIdx.x % the blocks of a cluster, where clusters lie along x.
// The host runs them one after another, so there a block has no others. Source: PTX ISA, "Cluster of Cooperative Thread
// Arrays", "barrier.cluster", "mapa" and "cp.async.bulk.tensor".
// Needs     lib/tma.cuh (TensorMap, arrive, copy_box)
// Provides  RUN_TOGETHER, sync_cluster, arrive_at, copy_box_to
#ifdef AUTOTUNE_HOST
constexpr bool RUN_TOGETHER = false;
#else
constexpr bool RUN_TOGETHER = true;
#endif

// Waits for all threads of all blocks, but those that have ended: then published barriers are seen, and nothing else
// that was written. It brings the threads of a warp together, too.
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

// At the barrier of the block of that rank, which has the same address in its shared memory as in this block's. Whoever
// waits there knows that this thread has read what it read before. What it wrote, only threads of its own block see: to
// show it to others, too, takes hundreds of cycles.
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

// As copy_box(), to the same address of each block whose rank is a bit of `blocks`; the bytes count for the barrier of
// the same address in each.
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
