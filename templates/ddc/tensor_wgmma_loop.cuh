// Steps by the code of one. Products of halves are cut into chains of CHAIN at most: a chain has registers of its own,
// and float32 adds it to the sums, and moves these as it adds a step's last one. Products of bytes are exact, and all
// added to the sums by the tensor core.
// Parts   of a step: PART_STEPS products, whose samples are in registers together; the last part may have fewer.
//             part p     |take p|unpack p + 1, load p + 2|take p + 1|unpack p + 2, load p + 3| ..
//                               |  products of p         ..          |  products of p + 1   ..
//         Products take samples from two sets of registers in turns. The compiler would not unpack between the start of
//         products and a wait for them, so the wait is for those of the part before; where a chain ends, for all.
//         Behind a step's last part follows the next step's first one. The words of a step are all loaded before its
//         last two parts: there the stage may end, and the next one's words follow without a gap.
// Loop    the code of one step, of at least two parts. Where sums stay, its only piece that depends on the place is the
//         one that takes the outputs that are done, for each place another; where they move, it is the first place.
// Runs    of a block's rows are consecutive. The outputs that the samples of a run begin and do not end are those that
//         the samples of the next run end and do not begin: overlap-add. The first WARM_UP steps of a row leave what it
//         has of the run before it behind its window; at the end each row adds what the next one left to the outputs
//         that are still open. The last row of a block is there for that alone: the next block begins with it.
typedef unsigned Samples[PART_STEPS * SAMPLE_BYTES][4];

static_assert(PARTS >= 2, "words are loaded two parts ahead");
{% if chain %}
constexpr int CHAIN = {{ chain }};  // products of a sum that the tensor core adds before float32 does
constexpr int CHAIN_PARTS = CHAIN / PART_STEPS;
static_assert(CHAIN % PART_STEPS == 0 && SUMS_MOVE, "whole parts a chain, and sums that move as it is added");
{% endif %}
constexpr int LAST_GROUPS = ceil_div(products_of(PARTS - 1) * PART_GROUPS, PART_STEPS);  // of a step, of its last part

// What a warp reads samples from: its stages, one after the other.
struct Stages {
    StageCopier& copier;
    const unsigned* const rows;  // the lane's first row of the first one
    int slot;  // of the one at hand
    unsigned parity;
    int end;  // the step behind it
    int bit;  // of the lane's first group of a step, in its row

    __device__ __forceinline__ Stages(StageCopier& copier, const unsigned* rows, int bit)
        : copier(copier), rows(rows), slot(0), parity(0), end(STAGE - WARM_UP), bit(bit)
    {
        copier.wait_for_stage(slot, parity);
    }

    // The lane's words of the step.
    __device__ __forceinline__ const unsigned* words() const { return rows + slot * (ROWS * PITCH * 4) + (bit >> 5); }

    // The words of the step behind `step`, whose last part's are `words_of_last`.
    __device__ __forceinline__ const unsigned* next_step(int step, const Words& words_of_last)
    {
        if (step == END - 1)
            return words();  // what becomes of these is not used
        bit += STEP_BITS;
        if (step + 1 == end) {
            __syncwarp();  // nobody reads the stage any more
            unsigned loaded = 0;
#pragma unroll
            for (int i = 0; i < 2 * LAST_GROUPS * GROUP_WORDS; ++i)
                loaded |= words_of_last[i / (LAST_GROUPS * GROUP_WORDS)][i / GROUP_WORDS % LAST_GROUPS][i % GROUP_WORDS];
            copier.next_stage(loaded);
            if (++slot == STAGES)
                slot = 0, parity ^= 1;
            copier.wait_for_stage(slot, parity);
            end += STAGE;
            bit = copier.pieces.start + copier.pieces.drift * 8 + threadIdx.x % 4 * GROUP_BITS;
        }
        return words();
    }
};

{% if moves %}
// A tile that is done.
typedef Sum Tile[OCTETS * 4];

// Takes the first tile out of the sums, {{ "each with the chain's added to it" if chain else "as they are" }}. The others move to the places before their
// own, and leave zeros for a new one.
__device__ __forceinline__ void move_sums(Tile& done, Sums& sums{{ ", const Sums& chain" if chain }})
{
#pragma unroll
    for (int i = 0; i < LIVE * OCTETS * 4; ++i) {
        Sum& to = i < OCTETS * 4 ? done[i] : sums[i - OCTETS * 4];
        to = sums[i]{{ " + chain[i]" if chain }};
    }
#pragma unroll
    for (int i = 0; i < OCTETS * 4; ++i)
        sums[(LIVE - 1) * OCTETS * 4 + i] = 0;
}

{% endif %}
// The products of a step with the LIVE blocks of weights{{ "" if moves else " from `block` on" }}, added to the sums{{ ", and these moved" if moves }}. samples: of its first
// part; words: of its second; from: where its words are. All three are then the next step's.
__device__ __forceinline__ void take_step(
    {{ "Tile& done, " if moves }}Sums& sums, Samples& samples, Words& words, const unsigned*& from, Stages& stages, int step,
    unsigned ring, {{ "" if moves else "int block, " }}Decoder& decoder)
{
{% if moves %}
    constexpr int block = 0;
{% endif %}
{% if chain %}
    Sums products;
{% endif %}
    Samples taken[2];
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        if (part == PARTS - 2)
            from = stages.next_step(step, words);
        take_samples(taken[part % 2], samples, decoder, products_of(part) * SAMPLE_BYTES);
        begin_products();
#pragma unroll
        for (int k = 0; k < PART_STEPS; ++k) {
            if (k >= products_of(part))
                continue;
            const unsigned long long blocks =
                blocks_of(ring, part * PART_STEPS + k, block, {{ "BYTE_COLUMNS" if bytes > 1 else 0 }});
{% if chain %}
            if (part % CHAIN_PARTS == 0 && k == 0)
                multiply<COLUMNS, false>(products, taken[part % 2][k], blocks);
            else
                multiply<COLUMNS>(products, taken[part % 2][k], blocks);
{% else %}
            multiply<COLUMNS>(sums, taken[part % 2][k * SAMPLE_BYTES], blocks);
{% if bytes > 1 %}
            multiply_u8<COLUMNS>(sums, taken[part % 2][k * 2 + 1], blocks_of(ring, part * PART_STEPS + k, block));
{% endif %}
{% endif %}
        }
        close_products();
        if (STEP_BITS % 32 != 0 && part == PARTS - 1)
            decoder.turn_to(stages.bit);  // the next step's first part
        decoder.decode(samples, words, products_of((part + 1) % PARTS));  // while the products go on
        load_part(words, from + (part + 2) % PARTS * PART_WORDS, products_of((part + 2) % PARTS));
{% if chain %}
        if (part % CHAIN_PARTS == CHAIN_PARTS - 1 || part == PARTS - 1) {
            wait_for_sums(products);
            if (part == PARTS - 1) {
                move_sums(done, sums, products);
            } else {
#pragma unroll
                for (int i = 0; i < COLUMNS / 2; ++i)
                    sums[i] += products[i];
            }
            continue;
        }
{% else %}
        if (part == PARTS - 1) {
            wait_for_sums(sums);
{% if moves %}
            move_sums(done, sums);
{% endif %}
            continue;
        }
{% endif %}
        wait_for_products<1>();  // the part before is done: its samples' registers are free
    }
}

{% if not moves %}
// The outputs that are done when blocks from `block` on have been met, which is from FIRST to LAST: few comparisons.
template <int FIRST, int LAST>
__device__ __forceinline__ void put_outputs_of(int block, float* to, Sums& sums, int lane, Sum zero)
{
    if constexpr (FIRST == LAST) {
        put_outputs<(LIVE - FIRST + 1) % LIVE>(to, sums, lane, zero);
    } else {
        constexpr int MIDDLE = (FIRST + LAST) / 2;
        if (block <= MIDDLE)
            put_outputs_of<FIRST, MIDDLE>(block, to, sums, lane, zero);
        else
            put_outputs_of<MIDDLE + 1, LAST>(block, to, sums, lane, zero);
    }
}
{% endif %}

// Behind the last step: the outputs that it leaves open, tile after tile, added to what the next rows have of them;
// `overlap`: where the lane's first one is, for both its rows. `lane_window`: where the window begins for the lane.
template <int TILE>
__device__ __forceinline__ void put_overlap(
    Writer& writer, float* lane_window, const float* const (&overlap)[2], const Sums& sums)
{
    if constexpr (TILE < WARM_UP) {
        constexpr int STEP_OF = END + TILE, PLACE = SUMS_MOVE ? TILE : (TASK_STEPS + 1 + TILE) % LIVE;
        Numbers numbers;
        numbers_of(numbers, sums + PLACE * OCTETS * 4, writer.lane);
#pragma unroll
        for (int i = 0; i < TILE_NUMBERS; ++i)
            lane_window[row_of(i) * (8 * WINDOW_PITCH) + STEP_OF % WINDOW_STEPS * (2 * STEP) + place_of(i)] =
                numbers[i] + overlap[row_of(i)][TILE * (2 * STEP) + place_of(i)];
        if constexpr ((STEP_OF + 1) % WINDOW_STEPS == 0)
            writer.drain((STEP_OF + 1) * STEP - WINDOW);
        put_overlap<TILE + 1>(writer, lane_window, overlap, sums);
    } else if constexpr (RUN % WINDOW != 0) {
        writer.drain(RUN / WINDOW * WINDOW);
    }
}

// All rows of the block have left what the rows before them add.
__device__ __forceinline__ void rows_have_left()
{
    __syncthreads();
}

// Instead of a task, where its outputs are not needed: the other warpgroups have the tensor cores for themselves. What is
// added to the row before the warp's `window` is not stored either.
__device__ __forceinline__ void take_no_task(float* window, int lane)
{
    if (WARM_UP > 0) {
        for (int i = lane; i < 2 * STEP * WARM_UP; i += 32)
            window[OVERLAP_AT + i] = 0.0f;
        rows_have_left();
    }
}

// The runs of a warpgroup, step after step.
__device__ __forceinline__ void take_task(
    StageCopier& copier, Writer& writer, Decoder& decoder, const unsigned* rows, float* lane_window, unsigned ring)
{
    Stages stages(copier, rows, decoder.bit);
    Sums sums = {};
    Samples samples;
    Words words;
    const unsigned* from = stages.words();
    load_part(words, from, products_of(0));
    decoder.decode(samples, words, products_of(0));
    load_part(words, from + PART_WORDS, products_of(1));
    float* to = lane_window + (WARM_UP > 0 ? OVERLAP_AT : 0);
    int window_end = WARM_UP > 0 ? 0 : WINDOW_STEPS;
{% if not moves %}
    // Which the compiler cannot tell: it would keep a zero for each register of a tile, and move them all from there.
    const Sum zero = kept(static_cast<int>(blockIdx.z));
    int block = 0;
{% endif %}
#pragma unroll 1
    for (int step = -WARM_UP; step < END;) {
{% if moves %}
        Tile done;
        take_step(done, sums, samples, words, from, stages, step, ring, decoder);
        put_tile(to, done, writer.lane);
{% else %}
        take_step(sums, samples, words, from, stages, step, ring, block, decoder);
        put_outputs_of<0, LIVE - 1>(block, to, sums, writer.lane, zero);
        block = block > 0 ? block - 1 : LIVE - 1;
{% endif %}
        to += 2 * STEP;
        if (++step == window_end) {
            if (step == 0)
                rows_have_left();
            else
                writer.drain(step * STEP - WINDOW);
            to = lane_window;
            window_end += WINDOW_STEPS;
        }
    }
    // Behind the block's last row there is none; what becomes of it is not stored
    const float* const overlap = lane_window + OVERLAP_AT + WINDOW_PITCH;
    const int n_behind = writer.n_rows - first_row_of(writer.lane);  // rows, from the lane's first one on
    const float* const first = overlap - (n_behind < 1) * WINDOW_PITCH;
    put_overlap<0>(writer, lane_window, {first, overlap + (n_behind < 9 ? 7 : 8) * WINDOW_PITCH}, sums);
}
