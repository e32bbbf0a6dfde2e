// The ring of stages in shared memory, and the three barriers of each: its copies are there, its operands are
// converted, it is released.
// Needs     nothing
// Provides  Ring: address, copied, converted, released, released_before, advance

// The stages in the order of their use, round and round; `parity` is that of the round.
struct Ring {
    unsigned base;  // of shared memory
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ explicit Ring(unsigned base) : base(base) {}
    __device__ __forceinline__ unsigned address() const { return base + stage * STAGE_BYTES; }
    __device__ __forceinline__ unsigned copied() const { return base + N_STAGES * STAGE_BYTES + stage * 24; }
    __device__ __forceinline__ unsigned converted() const { return copied() + 8; }
    __device__ __forceinline__ unsigned released() const { return copied() + 16; }
    __device__ __forceinline__ unsigned released_before() const  // that of the stage before
    {
        return base + N_STAGES * STAGE_BYTES + (stage == 0 ? N_STAGES - 1 : stage - 1) * 24 + 16;
    }
    __device__ __forceinline__ void advance()
    {
        if (++stage == N_STAGES)
            stage = 0, parity ^= 1;
    }
};
