// Registers move between warpgroups, from a pool that holds what the launch gave all threads: afterwards each thread
// has N. All threads of a warpgroup take part. Source: PTX ISA, "setmaxnreg", sm_90a.
template <int N>
__device__ __forceinline__ void give_registers()
{
#ifndef AUTOTUNE_HOST
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(N));
#endif
}

template <int N>
__device__ __forceinline__ void take_registers()
{
#ifndef AUTOTUNE_HOST
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(N));
#endif
}
