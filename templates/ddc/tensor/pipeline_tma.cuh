// Pipeline, by the copy engine of sm_90 (TMA): it copies all rows of a warp's stage at once, as one or two boxes of an
// array. The rows of this array are BOX_PITCH apart and longer than that, so they overlap.
// Needs     Shape; lib/tma.cuh (TensorMap, arrive_and_expect, copy_box, init_barrier, publish_barriers, shared_address,
//           wait), lib/async.cuh (wait_for_groups), pipeline_cp_async.cuh (CpAsyncPipeline)
// Provides  TmaPipeline: begin_stage, follow_stage, wait_for_stage, wait_for_begun; `pieces` says where stages start
// If a box could reach out of the buffer, lanes copy pieces instead (pipeline_cp_async.cuh). They also do on the host,
// which checks for races only if a kernel uses no barriers in shared memory.
template <class Shape>
struct TmaPipeline {
    static constexpr int BOX_BYTES = Shape::ROWS_PER_BOX * Shape::STAGE_PITCH * 16;
    static constexpr int STAGE_BYTES = Shape::ROWS_PER_WARP * Shape::STAGE_PITCH * 16;
    static_assert(BOX_BYTES % 128 == 0, "boxes start at multiples of 128 bytes");

    CpAsyncPipeline<Shape, false> pieces;
    const bool leads;  // whether this lane starts the copies of boxes
    const TensorMap* const map;
    const unsigned to;  // address of the first stage
    const unsigned barriers;  // address of the barriers, 8 bytes for each stage: over when its copies are complete
    const int y;  // first row of the boxes in the array
    const int x;  // word of that row at which the first box starts

    // `first_byte` is the first byte of the warp's first row.
    __device__ __forceinline__ TmaPipeline(
        int lane, uint4 (*stages)[Shape::ROWS_PER_WARP][Shape::STAGE_PITCH], const unsigned char* samples,
        long long n_bytes, long long first_byte, unsigned long long* barriers, const TensorMap& map)
        : pieces(lane, stages, samples, n_bytes, first_byte), leads(lane == 0), map(&map), to(shared_address(stages)),
          barriers(shared_address(barriers)), y(static_cast<int>(pieces.first / Shape::BOX_PITCH)),
          x(static_cast<int>(pieces.first % Shape::BOX_PITCH / 4))
    {
#ifndef AUTOTUNE_HOST
        if (leads) {
#pragma unroll
            for (int i = 0; i < Shape::N_STAGES; ++i)
                init_barrier(this->barriers + 8 * i, 1);
            publish_barriers();
        }
        __syncwarp();  // before any lane waits at one
#endif
    }

    // Begins the next stage in the place of a stage that has been read. `loaded` must be computed from the words that
    // were loaded last from there: __syncwarp() does not wait for loads that are under way, and the copy engine does
    // not queue behind them.
    __device__ __forceinline__ void follow_stage(unsigned loaded)
    {
        begin_stage(static_cast<int>(loaded & blockIdx.z));  // blockIdx.z is always 0, which the compiler cannot tell
    }

    // Begins the copies of the next stage. `zero` is 0, but is computed from the words loaded from its place, so the
    // copies wait for these loads.
    __device__ __forceinline__ void begin_stage(int zero)
    {
        if (!by_boxes()) {
            pieces.begin_stage();
            return;
        }
#ifndef AUTOTUNE_HOST
        if (pieces.stage < Shape::STAGES_PER_RUN && leads) {
            const unsigned barrier = barriers + 8 * pieces.slot;
            const int start = x + pieces.start_of_stage() / 4 + zero;
            const unsigned stage = to + pieces.slot * STAGE_BYTES;
            arrive_and_expect(barrier, STAGE_BYTES);
#pragma unroll
            for (int b = 0; b < Shape::ROWS_PER_WARP / Shape::ROWS_PER_BOX; ++b)
                copy_box(
                    stage + b * BOX_BYTES, map, barrier,
                    start + b * static_cast<int>(Shape::ROWS_PER_BOX * Shape::RUN_BYTES / 4), y);
        }
#endif
        ++pieces.stage;
        pieces.slot = pieces.slot + 1 < Shape::N_STAGES ? pieces.slot + 1 : 0;
    }

    // Waits for the first N_STAGES stages, although nothing reads them.
    __device__ __forceinline__ void wait_for_begun() const
    {
        wait_for_groups<0>();
#ifndef AUTOTUNE_HOST
        constexpr int N_BEGUN = Shape::N_STAGES < Shape::STAGES_PER_RUN ? Shape::N_STAGES : Shape::STAGES_PER_RUN;
        for (int i = 0; i < N_BEGUN && by_boxes(); ++i)
            wait(barriers + 8 * i, 0);
#endif
    }

    // Waits for the stage at `slot`, the oldest under way. `parity` is that of the number of earlier rounds through all
    // slots.
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

private:
    __device__ __forceinline__ bool by_boxes() const
    {
#ifdef AUTOTUNE_HOST
        return false;
#else
        return pieces.is_inside;
#endif
    }
};
