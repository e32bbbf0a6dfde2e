// Mainloop, unrolled: steps whose products the tensor core adds up (CHAIN 0).
// Needs     Shape; Decode: DecodeHalves; Ring: WeightRing; Mma: Wgmma; Pipeline: TmaPipeline; Output: Epilogue;
//           lib/opaque.cuh (opaque), lib/wgmma.cuh (begin_products, close_products),
//           part.cuh (Words, Operands, load_words)
// Provides  MainloopUnrolled: run, for a warpgroup; skip, which a warpgroup without outputs calls instead
// Loop    The code of N_TILES steps is written out, so that places are registers. If the loop stops in its middle, to
//         copy samples or to store outputs, it goes on at the same step.
// Time    Step v starts its products. It decodes the samples of step v + 1, whose words are in registers, and loads the
//         words of step v + 2. It waits for the products, moves the finished outputs from the sums to the window, and
//         sets their sums to zero for a new tile. No products run when the loop ends; if they did, ptxas would give
//         each step its own registers for sums.
template <class Shape, class Decode, class Ring, class Mma, class Pipeline, class Output>
struct MainloopUnrolled {
    typedef typename Mma::Sums Sums;
    typedef unsigned StepOperands[Shape::MMAS_PER_STEP][4];
    static constexpr int STEP_STRIDE = Shape::PARTS_PER_STEP * Shape::PART_STRIDE;  // words
    static constexpr int STAGE_WORDS = Shape::ROWS_PER_WARP * Shape::STAGE_PITCH * 4;
    // Place of a run's first step in its window.
    static constexpr int FIRST_PLACE =
        (Shape::STEPS_PER_WINDOW - Shape::WARM_UP_STEPS % Shape::STEPS_PER_WINDOW) % Shape::STEPS_PER_WINDOW;
    static_assert(Shape::STEPS_PER_STAGE >= 2, "samples of a stage's first two steps are there when a run begins");
    static_assert(Shape::BITS_PER_STEP % 32 == 0);
    static_assert(Shape::MMAS_PER_STEP * Shape::SAMPLES_PER_MMA == Shape::SAMPLES_PER_STEP);

    // Processes the runs of a warpgroup, step after step. `rows` is the lane's first row in the first stage.
    __device__ __forceinline__ static void run(
        Pipeline& pipeline, Output& epilogue, const Decode& decode, const unsigned* rows, float* lane_window,
        unsigned ring)
    {
        const unsigned* const lane_words = rows + (decode.bit >> 5);
        int slot = 0;
        unsigned parity = 0;
        Sums sums = {};
        StepOperands decoded;
        Words<Shape> words;
        pipeline.wait_for_stage(slot, parity);
        load_words<Shape>(words, lane_words);
        const unsigned* next = lane_words + Shape::PART_STRIDE;
        decode_step<0>(decoded, words, next, true, decode);
        next += STEP_STRIDE;
        int step = -Shape::WARM_UP_STEPS;
        int stage_end = stage_end_after(step - 1);
        int window_end = step - FIRST_PLACE + Shape::STEPS_PER_WINDOW;
        float* to = lane_window + FIRST_PLACE * (2 * Shape::OUTPUTS_PER_STEP);  // step 0 comes first in its window
        int place = 0;  // place of the tile that `step` begins
        while (true) {
            const int end = opaque(step < stage_end && stage_end < window_end ? stage_end : window_end);
#pragma unroll 1
            do {
                switch (place) {
{% for i in range(shape.n_tiles) %}
                case {{ i }}:
                    take_step<{{ i }}>(sums, decoded, words, next, step + 1 < stage_end, to, ring, decode);
                    next += STEP_STRIDE, to += 2 * Shape::OUTPUTS_PER_STEP;
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
                    epilogue.drain(step * Shape::OUTPUTS_PER_STEP - Shape::OUTPUTS_PER_WINDOW);
                if (step == Shape::END_STEP)
                    return;
                to = lane_window;
                window_end += Shape::STEPS_PER_WINDOW;
            }
            if (step == Shape::END_STEP - 1) {
                next = lane_words + slot * STAGE_WORDS;  // the last step decodes these words, but nothing uses them
            } else if (step == stage_end) {
                __syncwarp();  // nobody reads the stage any more
                unsigned loaded = 0;
#pragma unroll
                for (int i = 0; i < Shape::MMAS_PER_STEP * 4; ++i)
                    loaded |= decoded[i / 4][i % 4];
                pipeline.follow_stage(loaded);
                if (++slot == Shape::N_STAGES)
                    slot = 0, parity ^= 1;
                pipeline.wait_for_stage(slot, parity);
                next = lane_words + slot * STAGE_WORDS + pipeline.pieces.shift();
                load_words<Shape>(words, next);
                next += Shape::PART_STRIDE;
                stage_end = stage_end_after(step);
            }
        }
    }

    // Replaces `run` in a warpgroup whose outputs nobody needs, which leaves the tensor cores to the others.
    __device__ __forceinline__ static void skip(float*, int) {}

private:
    // Processes step v of a run, with v % N_TILES = PLACE, and decodes the step after it, whose words are in `words`.
    // `next` is the address of the words that follow them. Finished outputs go to the window at `to`.
    template <int PLACE>
    __device__ __forceinline__ static void take_step(
        Sums& sums, StepOperands& decoded, Words<Shape>& words, const unsigned* next, bool more, float* to,
        unsigned ring, const Decode& decode)
    {
        StepOperands taken;
        Mma::finish(taken, decoded, decode);
        begin_products();
#pragma unroll
        for (int k = 0; k < Shape::MMAS_PER_STEP; ++k)
            Mma::template product<true>(
                sums, taken[k], Ring::blocks_of(ring, k, (Shape::N_TILES - PLACE) % Shape::N_TILES));
        close_products();
        decode_step<0>(decoded, words, next, more, decode);  // while the products go on
        Mma::wait(sums);
        Mma::template put_place<(PLACE + 1) % Shape::N_TILES>(to, sums, 0);
    }

    // Decodes the parts of a step from PART on. `next` is the address of the words of the part after PART. Behind the
    // last part, the words of the next step are loaded if there are `more`.
    template <int PART>
    __device__ __forceinline__ static void decode_step(
        StepOperands& decoded, Words<Shape>& words, const unsigned* next, bool more, const Decode& decode)
    {
        if constexpr (PART < Shape::PARTS_PER_STEP) {
            decode.decode(*reinterpret_cast<Operands<Shape>*>(decoded + PART * Shape::MMAS_PER_PART), words);
            if (PART + 1 < Shape::PARTS_PER_STEP || more)
                load_words<Shape>(words, next);
            decode_step<PART + 1>(decoded, words, next + Shape::PART_STRIDE, more, decode);
        }
    }

    // Returns the step at which the stage has no more words to load, if the last words that were loaded belong to step
    // `step` + 1. Words are loaded a step before the step that uses them. In the last stage it is END_STEP - 1.
    __device__ __forceinline__ static int stage_end_after(int step)
    {
        return step + Shape::STEPS_PER_STAGE < Shape::END_STEP - 1
            ? step + Shape::STEPS_PER_STAGE
            : Shape::END_STEP - 1;
    }
};
