// Pipeline, by the copy engine of sm_90 (TMA): all rows of a warp's stage at once, as one or two boxes of an array
// whose rows are BOX_PITCH apart, and longer than that.
// Needs     Shape; lib/tma.cuh (TensorMap, arrive_and_expect, copy_box, init_barrier, publish_barriers, shared_address,
//           wait), lib/async.cuh (wait_for_groups), pipeline_cp_async.cuh (CpAsyncPipeline)
// Provides  TmaPipeline: begin_stage, follow_stage, wait_for_stage, wait_for_begun; `pieces` says where stages start
// Where a box could reach out of the buffer, lanes copy pieces (pipeline_cp_async.cuh); and on the host, which looks
// for races only where no barriers in shared memory are used.
template <class Shape>
struct TmaPipeline {
    static constexpr int BOX_BYTES = Shape::ROWS_PER_BOX * Shape::STAGE_PITCH * 16;
    static constexpr int STAGE_BYTES = Shape::ROWS_PER_WARP * Shape::STAGE_PITCH * 16;
    static_assert(BOX_BYTES % 128 == 0, "boxes start at multiples of 128 bytes");

    CpAsyncPipeline<Shape, false> pieces;
    const bool leads;  // the lane that has boxes copied
    const TensorMap* const map;
    const unsigned to;  // the first stage
    const unsigned barriers;  // 8 bytes for each stage: over when it is there
    const int y;  // of the boxes: their first row
    const int x;  // and where in it the first one starts, in words

    // `first_byte`: of the warp's first row.
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

    // Begins the next stage in the place of one that has been read; `loaded`: made of the words that were loaded last
    // from there. __syncwarp() does not wait for loads that are under way, and the copy engine does not queue behind
    // them.
    __device__ __forceinline__ void follow_stage(unsigned loaded)
    {
        begin_stage(static_cast<int>(loaded & blockIdx.z));  // which is 0 in all launches, and the compiler cannot tell
    }

    // Begins the copies of the next stage; `zero`: known only when all that was loaded from its place has been.
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

    // Waits for the first N_STAGES stages, none of which is read.
    __device__ __forceinline__ void wait_for_begun() const
    {
        wait_for_groups<0>();
#ifndef AUTOTUNE_HOST
        constexpr int N_BEGUN = Shape::N_STAGES < Shape::STAGES_PER_RUN ? Shape::N_STAGES : Shape::STAGES_PER_RUN;
        for (int i = 0; i < N_BEGUN && by_boxes(); ++i)
            wait(barriers + 8 * i, 0);
#endif
    }

    // Waits for the stage at `slot`, the oldest under way; parity: of the rounds through all slots before it.
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
