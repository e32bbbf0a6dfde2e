// Copies a warp's samples to shared memory by its lanes, as ddc/tensor_copy.cuh has it: rows that do not start alike within
// 16 bytes are no box, and as copies of a row each the engine is no faster.
struct StageCopier {
    Copier pieces;

    // `first_byte`: of the warp's first row.
    __device__ __forceinline__ StageCopier(
        int lane, uint4 (*stages)[ROWS][PITCH], const unsigned char* samples, long long n_bytes, long long first_byte)
        : pieces(lane, stages, samples, n_bytes, first_byte)
    {
    }

    // The first stages.
    __device__ __forceinline__ void begin()
    {
#pragma unroll 1
        for (int i = 0; i < STAGES; ++i)
            pieces.next_stage();
    }

    // `last`: words of the stage that was in its place.
    template <class Words>
    __device__ __forceinline__ void next_stage(const Words& last)
    {
        pieces.next_stage();
    }

    // For the stages that begin() has begun, none of which is read.
    __device__ __forceinline__ void wait_for_begun() const { wait_for_groups<0>(); }

    // For the oldest stage under way.
    __device__ __forceinline__ void wait_for_stage(int slot, unsigned parity) { pieces.wait_for_stage(); }
};
