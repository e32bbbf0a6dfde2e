// Move registers between warpgroups, through a pool of all registers that the launch allocated. Afterwards each thread
// of the calling warpgroup has N registers. All its threads take part. Source: PTX ISA, "setmaxnreg", sm_90a.
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
