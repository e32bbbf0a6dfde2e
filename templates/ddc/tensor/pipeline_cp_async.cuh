// Pipeline, by cp.async: the lanes of a warp copy its samples to shared memory, one stage of all its rows at a time.
// Needs     Shape; lib/async.cuh (copy_async, close_group, wait_for_groups), lib/vector.cuh (ceil_div)
// Provides  CpAsyncPipeline: begin_stage, wait_for_stage; where the stage at hand starts (offset, drift, start, shift)
// TAKES_ALL  if true, this pipeline copies all stages; if false, only those near the ends of the buffer, which the copy
//            engine of pipeline_tma.cuh cannot take
// A stage of a row starts at any byte, and at any bit if steps are not whole bytes. Its copies start at the multiple of
// 16 bytes before it.
// Rows    are placed in boxes as for the copy engine: BOX_PITCH apart, which is RUN_BYTES rounded to a multiple of 16.
//         So rows drift within their box: each row starts DRIFT bytes further behind its copies than the row before
//         it. If they drift, a box has 8 rows, and the next 8 rows are a second box with the same drifts.

// Returns how many copies each lane starts for a stage if lanes_per_row lanes copy a row.
template <class Shape>
__host__ __device__ constexpr int copies_by(int lanes_per_row)
{
    return ceil_div(Shape::PIECES_PER_ROW, lanes_per_row) * ceil_div(Shape::ROWS_PER_WARP, 32 / lanes_per_row);
}

// Returns how many lanes copy pieces of one row: the number with the fewest copies per lane, and among equals the
// largest.
template <class Shape>
__host__ __device__ constexpr int best_lanes()
{
    int best = Shape::PIECES_PER_ROW < 32 ? Shape::PIECES_PER_ROW : 32;
    if (Shape::DRIFT != 0 && Shape::ROWS_PER_BOX % (32 / best) != 0)
        best = 16;  // so that rows that are copied together lie in one box
    for (int lanes = 16; lanes >= 4; lanes /= 2)
        if (copies_by<Shape>(lanes) < copies_by<Shape>(best))
            best = lanes;
    return best;
}

template <class Shape, bool TAKES_ALL>
struct CpAsyncPipeline {
    static constexpr int LANES = best_lanes<Shape>();  // lanes that copy pieces of one row
    static constexpr int ROWS_AT_ONCE = 32 / LANES;
    static constexpr int UNUSED_BYTES =
        (Shape::STAGES_PER_RUN * Shape::STEPS_PER_STAGE - Shape::STEPS_PER_RUN) * Shape::BITS_PER_STEP / 8;
    static constexpr int LAST_PIECES = Shape::PIECES_PER_ROW - UNUSED_BYTES / 16;  // pieces in a row's last stage
    // Bytes of a row that its stages take at most.
    static constexpr long long RUN_SPAN =
        (Shape::STAGES_PER_RUN - 1ll) * Shape::BITS_PER_STAGE / 8 + Shape::STAGE_PITCH * 16;
    static constexpr int FAR = 1 << 30;

    const int lane_row;
    const int lane_piece;
    uint4* const stages;  // the lane's first piece in the first stage
    const unsigned char* const samples;
    const long long n_bytes;
    const long long first;  // byte of the buffer at which the copies of the warp's first stage start, a multiple of 16
    const bool is_inside;  // whether all stages lie inside the buffer
    const int offset;  // bytes from its copies to the first stage, in a row that does not drift
    const int drift;  // bytes by which the rows that the lane reads drift
    int start;  // bits from its copies to the stage that is read, in a row that does not drift
    int stage;  // number of the next stage to copy
    int slot;  // place of this next stage in shared memory

    // `first_byte` is the first byte of the warp's first row.
    __device__ __forceinline__ CpAsyncPipeline(
        int lane, uint4 (*stages)[Shape::ROWS_PER_WARP][Shape::STAGE_PITCH], const unsigned char* samples,
        long long n_bytes, long long first_byte)
        : lane_row(lane / LANES), lane_piece(lane % LANES), stages(&stages[0][lane_row][lane_piece]), samples(samples),
          n_bytes(n_bytes), first(first_byte - Shape::FIRST_DRIFT & ~15ll),
          is_inside(
              first_byte >= Shape::FIRST_DRIFT
              && first_byte + (Shape::ROWS_PER_WARP - 1) * Shape::RUN_BYTES + RUN_SPAN <= n_bytes),
          offset(static_cast<int>(first_byte - Shape::FIRST_DRIFT & 15)),
          drift(Shape::FIRST_DRIFT + lane / 4 * Shape::DRIFT),
          start(offset * 8 - Shape::BITS_PER_STAGE & 127), stage(0), slot(0)
    {
    }

    // Begins the copies of the next stage. It closes a group even if there are none, so that the number of groups under
    // way stays the same.
    __device__ __forceinline__ void begin_stage()
    {
        if (stage < Shape::STAGES_PER_RUN && (LANES * ROWS_AT_ONCE == 32 || lane_row < ROWS_AT_ONCE)) {
            if (TAKES_ALL && is_inside)
                copy<true>();
            else
                copy<false>();
        }
        close_group();
        ++stage;
        slot = slot + 1 < Shape::N_STAGES ? slot + 1 : 0;
    }

    // Waits for the oldest stage under way.
    __device__ __forceinline__ void wait_for_stage()
    {
        wait_for_groups<Shape::N_STAGES - 1>();
        __syncwarp();  // for every lane
        read_next();
    }

    // Makes the next stage the one that is read.
    __device__ __forceinline__ void read_next()
    {
        if constexpr (!Shape::STAGES_START_ALIKE)
            start = start + Shape::BITS_PER_STAGE & 127;
    }

    // Returns the bytes from the start of the first stage's copies to the start of the next stage's copies.
    __device__ __forceinline__ int start_of_stage() const
    {
        return Shape::STAGES_START_ALIKE ? stage * (Shape::BITS_PER_STAGE / 8)
                                     : (offset * 8 + stage * Shape::BITS_PER_STAGE) / 128 * 16;
    }

    // Returns by how many words the stage that is read starts further behind its copies than the first stage does. It
    // is exact if stages are whole words.
    __device__ __forceinline__ int shift() const { return Shape::STAGES_START_ALIKE ? 0 : start - offset * 8 >> 5; }

private:
    // Begins the copies of a stage. Bytes outside of the buffer become 0.
    template <bool IS_INSIDE>
    __device__ __forceinline__ void copy()
    {
        constexpr int ROW_COPIES = ceil_div(Shape::ROWS_PER_WARP, ROWS_AT_ONCE);
        static_assert(
            (Shape::ROWS_PER_WARP - 1) * Shape::RUN_BYTES + Shape::PIECES_PER_ROW * 16 < FAR, "places are ints");
        const int pieces = stage + 1 < Shape::STAGES_PER_RUN ? Shape::PIECES_PER_ROW : LAST_PIECES;
        const long long from = first + start_of_stage() + lane_row * Shape::BOX_PITCH + lane_piece * 16;
        // The buffer begins and ends so many bytes from the lane's first piece.
        const int begin = capped(-from), end = capped(n_bytes - from);
        uint4* const to = stages + slot * (Shape::ROWS_PER_WARP * Shape::STAGE_PITCH);
        const unsigned char* const address = samples + from;
#pragma unroll
        for (int i = 0; i < copies_by<Shape>(LANES); ++i) {
            const int r = i % ROW_COPIES * ROWS_AT_ONCE, p = i / ROW_COPIES * LANES;
            // All lanes have a piece to copy, except at the last rows and the last pieces.
            if ((r + ROWS_AT_ONCE > Shape::ROWS_PER_WARP && lane_row + r >= Shape::ROWS_PER_WARP)
                || (p + LANES > LAST_PIECES && lane_piece + p >= pieces))
                continue;
            const int further =
                r % Shape::ROWS_PER_BOX * Shape::BOX_PITCH +
                r / Shape::ROWS_PER_BOX * (Shape::ROWS_PER_BOX * Shape::RUN_BYTES) + p * 16;
            if constexpr (IS_INSIDE) {
                copy_async(to + r * Shape::STAGE_PITCH + p, address + further);
            } else {
                // Behind the buffer `left` is below 0, and before the buffer it is larger than the buffer. A copy of no
                // bytes may point anywhere.
                const int left = end - further;
                const int n = static_cast<unsigned>(left) > static_cast<unsigned>(end - begin) ? 0 : min(left, 16);
                copy_async(to + r * Shape::STAGE_PITCH + p, address + further, n);
            }
        }
    }

    __device__ __forceinline__ static int capped(long long n)
    {
        return n < -FAR ? -FAR : n > FAR ? FAR : static_cast<int>(n);
    }
};
