// Copies a warp's samples to shared memory by the copy engine of sm_90: all rows of a stage at once, as one or two boxes
// of an array whose rows are BOX_PITCH apart, and longer than that. Where a box could reach out of the buffer, lanes copy
// pieces, as in ddc/tensor_copy.cuh; and on the host, which looks for races only where no barriers in shared memory
// are used.
constexpr int BOX_BYTES = BOX_ROWS * PITCH * 16;
static_assert(BOX_BYTES % 128 == 0, "boxes start at multiples of 128 bytes");

// 0, but not before what `loaded` is made of has been loaded: __syncwarp() does not wait for loads that are under way, and
// the copy engine does not queue behind them.
__device__ __forceinline__ int zero_behind(unsigned loaded)
{
    return static_cast<int>(loaded & blockIdx.z);  // which is 0 in all launches, and the compiler cannot tell
}

struct StageCopier {
    Copier pieces;
    const bool leads;  // the lane that has boxes copied
    const TensorMap* const map;
    const unsigned to;  // the first stage
    const unsigned barriers;  // 8 bytes for each stage: over when it is there
    const int y;  // of the boxes: their first row
    const int x;  // and where in it the first one starts, in words

    // `first_byte`: of the warp's first row.
    __device__ __forceinline__ StageCopier(
        int lane, uint4 (*stages)[ROWS][PITCH], const unsigned char* samples, long long n_bytes, long long first_byte,
        unsigned long long* barriers, const TensorMap& map)
        : pieces(lane, stages, samples, n_bytes, first_byte), leads(lane == 0), map(&map), to(shared_address(stages)),
          barriers(shared_address(barriers)), y(static_cast<int>(pieces.first / BOX_PITCH)),
          x(static_cast<int>(pieces.first % BOX_PITCH / 4))
    {
#ifndef AUTOTUNE_HOST
        if (leads) {
#pragma unroll
            for (int i = 0; i < STAGES; ++i)
                init_barrier(this->barriers + 8 * i, 1);
            publish_barriers();
        }
        __syncwarp();  // before any lane waits at one
#endif
    }

    __device__ __forceinline__ bool by_boxes() const
    {
#ifdef AUTOTUNE_HOST
        return false;
#else
        return pieces.is_inside;
#endif
    }

    // `loaded`: made of the words that were loaded last from the stage that was in its place.
    __device__ __forceinline__ void next_stage(unsigned loaded)
    {
        begin_stage(zero_behind(loaded));
    }

    // `zero`: behind all that was loaded from its place.
    __device__ __forceinline__ void begin_stage(int zero)
    {
        if (!by_boxes()) {
            pieces.next_stage();
            return;
        }
#ifndef AUTOTUNE_HOST
        if (pieces.stage < TASK_STAGES && leads) {
            const unsigned barrier = barriers + 8 * pieces.slot;
            const int start = x + pieces.start_of_stage() / 4 + zero;
            const unsigned stage = to + pieces.slot * (ROWS * PITCH * 16);
            arrive_and_expect(barrier, ROWS * PITCH * 16);
#pragma unroll
            for (int b = 0; b < ROWS / BOX_ROWS; ++b)
                copy_box(stage + b * BOX_BYTES, map, barrier, start + b * static_cast<int>(BOX_ROWS * ROW_BYTES / 4), y);
        }
#endif
        ++pieces.stage;
        pieces.slot = pieces.slot + 1 < STAGES ? pieces.slot + 1 : 0;
    }

    // For the first STAGES stages, none of which is read.
    __device__ __forceinline__ void wait_for_begun() const
    {
        wait_for_groups<0>();
#ifndef AUTOTUNE_HOST
        for (int i = 0; i < (STAGES < TASK_STAGES ? STAGES : TASK_STAGES) && by_boxes(); ++i)
            wait(barriers + 8 * i, 0);
#endif
    }

    // For the stage at `slot`, the oldest under way; parity: of the turns through all slots before it.
    __device__ __forceinline__ void wait_for_stage(int slot, unsigned parity)
    {
        if (!by_boxes()) {
            pieces.wait_for_stage();
            return;
        }
#ifndef AUTOTUNE_HOST
        wait(barriers + 8 * slot, parity);
#endif
        pieces.read_next();
    }
};
