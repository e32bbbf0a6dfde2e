// Copies a warp's samples to shared memory, a stage of all ROWS rows at a time. A stage of a row starts at any byte, and
// at any bit if steps are not whole bytes; its copies, at a multiple of 16 bytes before it.
// Rows    lie in boxes, for the copy engine of sm_90, whose rows are a multiple of 16 bytes apart: BOX_PITCH, the nearest
//         to ROW_BYTES. So rows drift within their box: each starts by DRIFT bytes further behind its copies than the
//         one before it. Where they do, a box is of 8 rows, which the next 8 follow alike.
constexpr int STAGE_BITS = STAGE * STEP_BITS;
// The last products may take more than their step's.
constexpr int READ_BITS = (STAGE - 1) * STEP_BITS + K_STEPS * (PRODUCT * SAMPLE_BITS);
constexpr long long ROW_BYTES = static_cast<long long>(RUN) * DECIMATION / 8 * SAMPLE_BITS
    + static_cast<long long>(RUN) * DECIMATION % 8 * SAMPLE_BITS / 8;  // from row to row
constexpr long long BOX_PITCH = (ROW_BYTES + 8) / 16 * 16;
constexpr int DRIFT = static_cast<int>(ROW_BYTES - BOX_PITCH);
constexpr int BOX_ROWS = DRIFT == 0 ? ROWS : 8;
constexpr int MOST_DRIFT = (BOX_ROWS - 1) * (DRIFT < 0 ? -DRIFT : DRIFT);
constexpr int FIRST_DRIFT = DRIFT < 0 ? MOST_DRIFT : 0;  // of a box's first row
static_assert(8 * ROW_BYTES % 16 == 0, "a lane reads of rows 8 apart, which start alike within 16 bytes");
constexpr int FIRST_BIT = MOST_DRIFT * 8 + (WHOLE_BYTES ? 120 : 127);  // of a stage, behind its copies, at most
// The words of the stage's last group, wherever it starts, end within them.
constexpr int PIECES = ceil_div((READ_BITS + FIRST_BIT - GROUP_BITS) / 32 * 4 + GROUP_WORDS * 4, 16);
constexpr int PITCH = PIECES | 1;  // odd: loads of words by 8 rows of 4 lanes are then mostly free of bank conflicts
constexpr bool ALIKE = STAGE_BITS % 128 == 0;  // all stages start alike within 16 bytes

// Of a row, that lanes copy together: the largest of few shapes that needs the fewest turns.
__host__ __device__ constexpr int turns_of(int lanes_a_row)
{
    return ceil_div(PIECES, lanes_a_row) * ceil_div(ROWS, 32 / lanes_a_row);
}

__host__ __device__ constexpr int best_lanes()
{
    int best = PIECES < 32 ? PIECES : 32;
    if (DRIFT != 0 && BOX_ROWS % (32 / best) != 0)
        best = 16;  // so that rows copied together are of one box
    for (int lanes = 16; lanes >= 4; lanes /= 2)
        if (turns_of(lanes) < turns_of(best))
            best = lanes;
    return best;
}

struct Copier {
    static constexpr int LANES = best_lanes();  // that copy pieces of one row
    static constexpr int ROWS_AT_ONCE = 32 / LANES;
    static constexpr int UNUSED_BYTES = (TASK_STAGES * STAGE - TASK_STEPS) * STEP_BITS / 8;
    static constexpr int LAST_PIECES = PIECES - UNUSED_BYTES / 16;
    static constexpr long long TASK_BYTES = (TASK_STAGES - 1ll) * STAGE_BITS / 8 + PITCH * 16;  // of a row, at most

    const int lane_row;
    const int lane_piece;
    uint4* const stages;  // the lane's first piece in the first of them
    const unsigned char* const samples;
    const long long n_bytes;
    const long long first;  // where copies of the warp's first stage start, in the buffer: a multiple of 16
    const bool is_inside;  // no stage reaches out of the buffer
    const int offset;  // of the first stage behind its copies, of a row that does not drift
    const int drift;  // of the rows that the lane reads
    int start;  // of the stage that is read, in bits, as `offset`
    int stage;  // the next one
    int slot;  // where it goes

    // `first_byte`: of the warp's first row.
    __device__ __forceinline__ Copier(
        int lane, uint4 (*stages)[ROWS][PITCH], const unsigned char* samples, long long n_bytes, long long first_byte)
        : lane_row(lane / LANES), lane_piece(lane % LANES), stages(&stages[0][lane_row][lane_piece]), samples(samples),
          n_bytes(n_bytes), first(first_byte - FIRST_DRIFT & ~15ll),
          is_inside(first_byte >= FIRST_DRIFT && first_byte + (ROWS - 1) * ROW_BYTES + TASK_BYTES <= n_bytes),
          offset(static_cast<int>(first_byte - FIRST_DRIFT & 15)), drift(FIRST_DRIFT + lane / 4 * DRIFT),
          start(offset * 8 - STAGE_BITS & 127), stage(0), slot(0)
    {
    }

    // Where the copies of the next stage start, from those of the first one.
    __device__ __forceinline__ int start_of_stage() const
    {
        return ALIKE ? stage * (STAGE_BITS / 8) : (offset * 8 + stage * STAGE_BITS) / 128 * 16;
    }

    // The next stage is read.
    __device__ __forceinline__ void read_next()
    {
        if constexpr (!ALIKE)
            start = start + STAGE_BITS & 127;
    }

    // Words, where stages are whole words, by which the stage that is read starts further than the first one.
    __device__ __forceinline__ int shift() const { return ALIKE ? 0 : start - offset * 8 >> 5; }

    // Closes a group in any case, so that the number of groups under way stays the same.
    __device__ __forceinline__ void next_stage()
    {
        if (stage < TASK_STAGES && (LANES * ROWS_AT_ONCE == 32 || lane_row < ROWS_AT_ONCE)) {
{% if config.MMA != "mma_sync" %}
            copy<false>();  // what the engine does not
{% else %}
            if (is_inside)
                copy<true>();
            else
                copy<false>();
{% endif %}
        }
        close_group();
        ++stage;
        slot = slot + 1 < STAGES ? slot + 1 : 0;
    }

    // For the oldest stage under way.
    __device__ __forceinline__ void wait_for_stage()
    {
        wait_for_groups<STAGES - 1>();
        __syncwarp();  // for every lane
        read_next();
    }

    // What lies outside of the buffer is 0.
    template <bool IS_INSIDE>
    __device__ __forceinline__ void copy()
    {
        constexpr int ROW_TURNS = ceil_div(ROWS, ROWS_AT_ONCE);
        static_assert((ROWS - 1) * ROW_BYTES + PIECES * 16 < FAR, "places of pieces are ints");
        const int pieces = stage + 1 < TASK_STAGES ? PIECES : LAST_PIECES;
        const long long from = first + start_of_stage() + lane_row * BOX_PITCH + lane_piece * 16;
        const int begin = capped(-from), end = capped(n_bytes - from);  // of the buffer, from the lane's first piece
        uint4* const to = stages + slot * (ROWS * PITCH);
        const unsigned char* const address = samples + from;
#pragma unroll
        for (int i = 0; i < turns_of(LANES); ++i) {
            const int r = i % ROW_TURNS * ROWS_AT_ONCE, p = i / ROW_TURNS * LANES;
            // All lanes have a piece of this turn, but for the last turns of rows and of pieces.
            if ((r + ROWS_AT_ONCE > ROWS && lane_row + r >= ROWS)
                || (p + LANES > LAST_PIECES && lane_piece + p >= pieces))
                continue;
            const int further = r % BOX_ROWS * BOX_PITCH + r / BOX_ROWS * (BOX_ROWS * ROW_BYTES) + p * 16;
            if constexpr (IS_INSIDE) {
                copy_async(to + r * PITCH + p, address + further);
            } else {
                // Below 0 behind the buffer, and too much before it. A copy of no bytes may point anywhere.
                const int left = end - further;
                const int n = static_cast<unsigned>(left) > static_cast<unsigned>(end - begin) ? 0 : min(left, 16);
                copy_async(to + r * PITCH + p, address + further, n);
            }
        }
    }

    static constexpr int FAR = 1 << 30;

    __device__ __forceinline__ static int capped(long long n)
    {
        return n < -FAR ? -FAR : n > FAR ? FAR : static_cast<int>(n);
    }
};

// Words of the part's first `n` products. `from`: the lane's first one of its first row.
__device__ __forceinline__ void load_part(Words& words, const unsigned* from, int n = PART_STEPS)
{
#pragma unroll
    for (int i = 0; i < 2 * PART_GROUPS * GROUP_WORDS; ++i) {
        const int r = i / (PART_GROUPS * GROUP_WORDS), g = i / GROUP_WORDS % PART_GROUPS, w = i % GROUP_WORDS;
        if (g * PART_STEPS < n * PART_GROUPS)
            words[r][g][w] = from[r * (8 * PITCH * 4) + g * GROUP_STRIDE + w];
    }
}
