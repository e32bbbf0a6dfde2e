// Steps whose products are all added by the tensor core.
// Loop    the code of LIVE steps is written out, so that places are registers. A loop that ends in its middle, to copy
//         samples or to store outputs, goes on there.
// Time    step v starts its products; unpacks the samples of step v + 1, whose words are in registers, and loads the
//         words of step v + 2; waits for the products; takes the outputs that are done out of the sums, to the window,
//         and leaves zeros for a new tile. No products go on where the loop ends: ptxas would give those of each step
//         registers of their own.
typedef unsigned Samples[K_STEPS][4];

constexpr int STEP_WORDS = PARTS * PART_WORDS;
// Of a task's first step in a window.
constexpr int FIRST_PLACE = (WINDOW_STEPS - WARM_UP % WINDOW_STEPS) % WINDOW_STEPS;

// Parts of a step's samples, from PART on. `next`: where the words of the part after this one are; behind the last
// part, those of the next step are loaded if there are `more`.
template <int PART>
__device__ __forceinline__ void decode_step(
    Samples& samples, Words& words, const unsigned* next, bool more, const Decoder& decoder)
{
    if constexpr (PART < PARTS) {
        decoder.decode(*reinterpret_cast<unsigned(*)[PART_STEPS][4]>(samples + PART * PART_STEPS), words);
        if (PART + 1 < PARTS || more)
            load_part(words, next);
        decode_step<PART + 1>(samples, words, next + PART_WORDS, more, decoder);
    }
}

// Step v of a task, v % LIVE = PLACE, and the samples of the step after it, whose words are in `words`; `next`: where
// the words behind those are. The outputs that are done go to the window at `to`.
template <int PLACE>
__device__ __forceinline__ void take_step(
    Sums& sums, Samples& samples, Words& words, const unsigned* next, bool more, float* to, unsigned ring,
    const Decoder& decoder)
{
    Samples taken;
    take_samples(taken, samples, decoder);
    begin_products();
#pragma unroll
    for (int k = 0; k < K_STEPS; ++k)
        multiply<COLUMNS>(sums, taken[k], blocks_of(ring, k, (LIVE - PLACE) % LIVE));
    close_products();
    decode_step<0>(samples, words, next, more, decoder);  // while the products go on
    wait_for_sums(sums);
    put_outputs<(PLACE + 1) % LIVE>(to, sums, 0);
}

// Before which step words cannot be loaded from the stage any more, if the last ones loaded were of step `step` + 1: a
// step before the one that they are for is begun. Or there are none.
__device__ __forceinline__ int stage_end_after(int step)
{
    return step + STAGE < RUN / STEP - 1 ? step + STAGE : RUN / STEP - 1;
}

// Instead of a task, where its outputs are not needed: the other warpgroups have the tensor cores for themselves.
__device__ __forceinline__ void take_no_task(float*, int) {}

// The runs of a warpgroup, step after step. `rows`: the lane's first row of the first stage.
__device__ __forceinline__ void take_task(
    StageCopier& copier, Writer& writer, const Decoder& decoder, const unsigned* rows, float* lane_window, unsigned ring)
{
    const unsigned* const lane_words = rows + decoder.first_word();
    int slot = 0;
    unsigned parity = 0;
    Sums sums = {};
    Samples unpacked;
    Words words;
    copier.wait_for_stage(slot, parity);
    load_part(words, lane_words);
    const unsigned* next = lane_words + PART_WORDS;
    decode_step<0>(unpacked, words, next, true, decoder);
    next += STEP_WORDS;
    int step = -WARM_UP;
    int stage_end = stage_end_after(step - 1);
    int window_end = step - FIRST_PLACE + WINDOW_STEPS;
    float* to = lane_window + FIRST_PLACE * (2 * STEP);  // so that step 0 comes first in its window
    int place = 0;  // of the tile that step begins
    while (true) {
        const int end = kept(step < stage_end && stage_end < window_end ? stage_end : window_end);
#pragma unroll 1
        do {
            switch (place) {
{% for i in range(live) %}
            case {{ i }}:
                take_step<{{ i }}>(sums, unpacked, words, next, step + 1 < stage_end, to, ring, decoder);
                next += STEP_WORDS, to += 2 * STEP;
                ++step;
{% if not loop.last %}
                if (step == end) {
                    place = {{ i + 1 }};
                    break;
                }
{% endif %}
{% endfor %}
                place = 0;
            }
        } while (step != end);
        if (step == window_end) {
            if (step > 0)
                writer.drain(step * STEP - WINDOW);
            if (step == RUN / STEP)
                return;
            to = lane_window;
            window_end += WINDOW_STEPS;
        }
        if (step == RUN / STEP - 1) {
            next = lane_words + slot * (ROWS * PITCH * 4);  // what the last step makes of it is not used
        } else if (step == stage_end) {
            __syncwarp();  // nobody reads the stage any more
            unsigned loaded = 0;
#pragma unroll
            for (int i = 0; i < K_STEPS * 4; ++i)
                loaded |= unpacked[i / 4][i % 4];
            copier.next_stage(loaded);
            if (++slot == STAGES)
                slot = 0, parity ^= 1;
            copier.wait_for_stage(slot, parity);
            next = lane_words + slot * (ROWS * PITCH * 4) + copier.pieces.shift();
            load_part(words, next);
            next += PART_WORDS;
            stage_end = stage_end_after(step);
        }
    }
}
