// Mainloop, rolled: a loop whose body is one step, for chains that are cut (CHAIN 8) and for bytes. Runs overlap.
// Needs     Shape; Decode: DecodeHalves, DecodeBytes or DecodeFields; Weights: WeightHalves or WeightBytes;
//           Ring: WeightRing; Mma: Wgmma; Accumulators; Pipeline: TmaPipeline; Output: Epilogue;
//           lib/opaque.cuh (opaque), lib/wgmma.cuh (begin_products, close_products, wait_for_products),
//           lib/vector.cuh (ceil_div), part.cuh (Words, Operands, load_words)
// Provides  MainloopRolled: run, for a warpgroup; skip, which a warpgroup without outputs calls instead
// Chains  Products of halves are cut into chains of at most MMAS_PER_CHAIN. A chain has registers of its own, and
//         float32 additions add it to the sums. The addition of a step's last chain also moves the sums. Products of
//         bytes are exact, so the tensor core adds all of them to the sums.
// Parts   A part is MMAS_PER_PART products of a step, whose operands are in registers together. The last part may have
//         fewer.
//             part p     |finish p|decode p + 1, load p + 2|finish p + 1|decode p + 2, load p + 3| ..
//                                 |  products of p         ..            |  products of p + 1   ..
//         Products take their operands from two sets of registers in turn. The compiler would not decode between the
//         start of products and a wait for them, so a part waits for the products of the part before it; at the end of
//         a chain it waits for all. A step's last part is followed by the next step's first part. All words of a step
//         are loaded before its last two parts. There the stage may end, and the words of the next stage follow without
//         a gap.
// Loop    The body is one step of at least two parts. If sums stay, one piece of it depends on the step: it takes the
//         finished outputs from one of the places, and has code for each. If sums move, they are always at the first
//         place.
// Runs    The runs of a block's rows are consecutive. The samples of a run begin outputs that the samples of the next
//         run complete (overlap-add). In its first WARM_UP_STEPS steps a row stores its share of the previous run's
//         last outputs behind its window. At the end each row adds the share that the next row has stored to its last
//         outputs. The last row of a block exists for this share alone, and the next block begins with the same run.
template <
    class Shape, class Decode, class Weights, class Ring, class Mma, class Accumulators, class Pipeline, class Output>
struct MainloopRolled {
    typedef typename Mma::Sum Sum;
    typedef typename Mma::Sums Sums;
    typedef Sum DoneTile[Mma::SUMS_PER_TILE];
    static constexpr bool CUTS_CHAINS = Shape::MMAS_PER_CHAIN > 0;
    static constexpr int PARTS_PER_CHAIN = Shape::MMAS_PER_CHAIN / Shape::MMAS_PER_PART;
    static_assert(Shape::PARTS_PER_STEP >= 2, "words are loaded two parts ahead");
    static_assert(Shape::RUNS_OVERLAP && Shape::END_STEP > 0, "what a run leaves open ends in the next one");
    static_assert(!CUTS_CHAINS || (Shape::MMAS_PER_CHAIN % Shape::MMAS_PER_PART == 0 && Shape::SUMS_MOVE),
        "whole parts a chain, and sums that move as it is added");

    // Processes the runs of a warpgroup, step after step. `rows` is the lane's first row in the first stage.
    __device__ __forceinline__ static void run(
        Pipeline& pipeline, Output& epilogue, Decode& decode, const unsigned* rows, float* lane_window, unsigned ring)
    {
        Stages stages(pipeline, rows, decode.bit);
        Sums sums = {};
        Operands<Shape> decoded;
        Words<Shape> words;
        const unsigned* from = stages.words();
        load_words<Shape>(words, from, Shape::mmas_of_part(0));
        decode.decode(decoded, words, Shape::mmas_of_part(0));
        load_words<Shape>(words, from + Shape::PART_STRIDE, Shape::mmas_of_part(1));
        float* to = lane_window + (Shape::WARM_UP_STEPS > 0 ? Shape::OVERLAP_AT : 0);
        int window_end = Shape::WARM_UP_STEPS > 0 ? 0 : Shape::STEPS_PER_WINDOW;
        // If the compiler could tell that it is 0, it would keep a zero for each register of a tile and copy them all
        // from there.
        Sum zero = 0;
        if constexpr (!Shape::SUMS_MOVE)
            zero = opaque(static_cast<int>(blockIdx.z));
        int block = 0;  // block of weights by which samples are multiplied for the first place
#pragma unroll 1
        for (int step = -Shape::WARM_UP_STEPS; step < Shape::END_STEP;) {
            DoneTile done;
            take_step(done, sums, decoded, words, from, stages, step, ring, block, decode);
            if constexpr (Shape::SUMS_MOVE) {
                Mma::put_tile(to, done, epilogue.lane);
            } else {
                put_place_of<0, Shape::N_TILES - 1>(block, to, sums, epilogue.lane, zero);
                block = block > 0 ? block - 1 : Shape::N_TILES - 1;
            }
            to += 2 * Shape::OUTPUTS_PER_STEP;
            if (++step == window_end) {
                if (step == 0)
                    rows_have_left();
                else
                    epilogue.drain(step * Shape::OUTPUTS_PER_STEP - Shape::OUTPUTS_PER_WINDOW);
                to = lane_window;
                window_end += Shape::STEPS_PER_WINDOW;
            }
        }
        // There is no row behind the block's last one, and outputs of the last one are not stored.
        const float* const overlap = lane_window + Shape::OVERLAP_AT + Shape::WINDOW_PITCH;
        // Rows whose outputs are stored, from the lane's first row on.
        const int n_behind = epilogue.n_rows - Accumulators::first_row_of(epilogue.lane);
        const float* const first = overlap - (n_behind < 1) * Shape::WINDOW_PITCH;
        put_overlap<0>(epilogue, lane_window, {first, overlap + (n_behind < 9 ? 7 : 8) * Shape::WINDOW_PITCH}, sums);
    }

    // Replaces `run` in a warpgroup whose outputs nobody needs, which leaves the tensor cores to the others. It only
    // stores zeros for the row before the warp's `window`, whose last outputs are not stored either.
    __device__ __forceinline__ static void skip(float* window, int lane)
    {
        if (Shape::WARM_UP_STEPS > 0) {
            for (int i = lane; i < 2 * Shape::OUTPUTS_PER_STEP * Shape::WARM_UP_STEPS; i += 32)
                window[Shape::OVERLAP_AT + i] = 0.0f;
            rows_have_left();
        }
    }

private:
    static constexpr int LAST_GROUPS =  // groups in a step's last part
        ceil_div(Shape::mmas_of_part(Shape::PARTS_PER_STEP - 1) * Shape::GROUPS_PER_PART, Shape::MMAS_PER_PART);

    // The stages of a warp, from which it loads words one after the other.
    struct Stages {
        Pipeline& pipeline;
        const unsigned* const rows;  // the lane's first row in the first stage
        int slot;  // place of the stage at hand
        unsigned parity;
        int end;  // first step behind the stage at hand
        int bit;  // first bit of the lane's first group of the step, in its row

        __device__ __forceinline__ Stages(Pipeline& pipeline, const unsigned* rows, int bit)
            : pipeline(pipeline), rows(rows), slot(0), parity(0),
              end(Shape::STEPS_PER_STAGE - Shape::WARM_UP_STEPS), bit(bit)
        {
            pipeline.wait_for_stage(slot, parity);
        }

        // Returns the address of the lane's words of the step.
        __device__ __forceinline__ const unsigned* words() const
        {
            return rows + slot * (Shape::ROWS_PER_WARP * Shape::STAGE_PITCH * 4) + (bit >> 5);
        }

        // Returns the address of the lane's words of the step after `step`. `words_of_last` are those of the last part
        // of `step`.
        __device__ __forceinline__ const unsigned* next_step(int step, const Words<Shape>& words_of_last)
        {
            if (step == Shape::END_STEP - 1)
                return words();  // these words are decoded, but not used
            bit += Shape::BITS_PER_STEP;
            if (step + 1 == end) {
                __syncwarp();  // nobody reads the stage any more
                unsigned loaded = 0;
#pragma unroll
                for (int i = 0; i < 2 * LAST_GROUPS * Shape::WORDS_PER_GROUP; ++i) {
                    const int g = i / Shape::WORDS_PER_GROUP % LAST_GROUPS;
                    loaded |= words_of_last[i / (LAST_GROUPS * Shape::WORDS_PER_GROUP)][g][i % Shape::WORDS_PER_GROUP];
                }
                pipeline.follow_stage(loaded);
                if (++slot == Shape::N_STAGES)
                    slot = 0, parity ^= 1;
                pipeline.wait_for_stage(slot, parity);
                end += Shape::STEPS_PER_STAGE;
                bit = pipeline.pieces.start + pipeline.pieces.drift * 8 + threadIdx.x % 4 * Shape::BITS_PER_GROUP;
            }
            return words();
        }
    };

    // Adds the products of a step with the N_TILES blocks of weights from `block` on to the sums. If sums move, those
    // of the first tile go to `done`. `decoded` has the operands of the step's first part, `words` the words of its
    // second part, and `from` is the address of its words. On return, all three belong to the next step.
    __device__ __forceinline__ static void take_step(
        DoneTile& done, Sums& sums, Operands<Shape>& decoded, Words<Shape>& words, const unsigned*& from,
        Stages& stages, int step, unsigned ring, int block, Decode& decode)
    {
        Sums chain;
        Operands<Shape> taken[2];
#pragma unroll
        for (int part = 0; part < Shape::PARTS_PER_STEP; ++part) {
            if (part == Shape::PARTS_PER_STEP - 2)
                from = stages.next_step(step, words);
            Mma::finish(taken[part % 2], decoded, decode, Shape::mmas_of_part(part) * Shape::OPERANDS_PER_SAMPLE);
            begin_products();
#pragma unroll
            for (int k = 0; k < Shape::MMAS_PER_PART; ++k) {
                if (k >= Shape::mmas_of_part(part))
                    continue;
                const unsigned (&operand)[4] = taken[part % 2][k * Shape::OPERANDS_PER_SAMPLE];
                const int product = part * Shape::MMAS_PER_PART + k;
                const unsigned long long blocks = Ring::blocks_of(ring, product, block, Weights::COLUMNS_EARLIER);
                if constexpr (CUTS_CHAINS) {
                    if (part % PARTS_PER_CHAIN == 0 && k == 0)
                        Mma::template product<false>(chain, operand, blocks);
                    else
                        Mma::template product<true>(chain, operand, blocks);
                } else {
                    Mma::template product<true>(sums, operand, blocks);
                    if constexpr (Shape::OPERANDS_PER_SAMPLE > 1)
                        Mma::product_of_lower(sums, taken[part % 2][k * 2 + 1], Ring::blocks_of(ring, product, block));
                }
            }
            close_products();
            if (Shape::BITS_PER_STEP % 32 != 0 && part == Shape::PARTS_PER_STEP - 1)
                decode.align_to(stages.bit);  // the next step's first part
            // The products run meanwhile.
            decode.decode(decoded, words, Shape::mmas_of_part((part + 1) % Shape::PARTS_PER_STEP));
            const int loaded = (part + 2) % Shape::PARTS_PER_STEP;
            load_words<Shape>(words, from + loaded * Shape::PART_STRIDE, Shape::mmas_of_part(loaded));
            if constexpr (CUTS_CHAINS) {
                if (part % PARTS_PER_CHAIN == PARTS_PER_CHAIN - 1 || part == Shape::PARTS_PER_STEP - 1) {
                    Mma::wait(chain);
                    if (part == Shape::PARTS_PER_STEP - 1) {
                        move_sums(done, sums, chain);
                    } else {
#pragma unroll
                        for (int i = 0; i < Shape::COLUMNS_PER_MMA / 2; ++i)
                            sums[i] += chain[i];
                    }
                    continue;
                }
            } else if (part == Shape::PARTS_PER_STEP - 1) {
                Mma::wait(sums);
                if constexpr (Shape::SUMS_MOVE)
                    move_sums(done, sums, chain);
                continue;
            }
            wait_for_products<1>();  // the previous part is done, so its operands' registers are free
        }
    }

    // Adds the chain, if there is one, to the sums, and moves each tile to the place before its own. The first tile
    // goes to `done`, and zeros for a new tile come to the last place.
    __device__ __forceinline__ static void move_sums(DoneTile& done, Sums& sums, const Sums& chain)
    {
#pragma unroll
        for (int i = 0; i < Shape::N_TILES * Mma::SUMS_PER_TILE; ++i) {
            Sum& to = i < Mma::SUMS_PER_TILE ? done[i] : sums[i - Mma::SUMS_PER_TILE];
            if constexpr (CUTS_CHAINS)
                to = sums[i] + chain[i];
            else
                to = sums[i];
        }
#pragma unroll
        for (int i = 0; i < Mma::SUMS_PER_TILE; ++i)
            sums[(Shape::N_TILES - 1) * Mma::SUMS_PER_TILE + i] = 0;
    }

    // Puts the outputs that a step with blocks from `block` on has completed into the window. `block` is from FIRST to
    // LAST; bisection takes few comparisons.
    template <int FIRST, int LAST>
    __device__ __forceinline__ static void put_place_of(int block, float* to, Sums& sums, int lane, Sum zero)
    {
        if constexpr (FIRST == LAST) {
            Mma::template put_place<(Shape::N_TILES - FIRST + 1) % Shape::N_TILES>(to, sums, lane, zero);
        } else {
            constexpr int MIDDLE = (FIRST + LAST) / 2;
            if (block <= MIDDLE)
                put_place_of<FIRST, MIDDLE>(block, to, sums, lane, zero);
            else
                put_place_of<MIDDLE + 1, LAST>(block, to, sums, lane, zero);
        }
    }

    // Puts the outputs that are still open after the last step into the window, from tile TILE on, and adds the shares
    // of the next rows to them. `overlap` is the place of the lane's first number in these shares, for both its rows;
    // `lane_window` is that in the window.
    template <int TILE>
    __device__ __forceinline__ static void put_overlap(
        Output& epilogue, float* lane_window, const float* const (&overlap)[2], const Sums& sums)
    {
        if constexpr (TILE < Shape::WARM_UP_STEPS) {
            constexpr int STEP_OF = Shape::END_STEP + TILE;
            constexpr int PLACE = Shape::SUMS_MOVE ? TILE : (Shape::STEPS_PER_RUN + 1 + TILE) % Shape::N_TILES;
            float* const to = lane_window + STEP_OF % Shape::STEPS_PER_WINDOW * (2 * Shape::OUTPUTS_PER_STEP);
            float numbers[Accumulators::NUMBERS_PER_TILE];
            Accumulators::numbers_of(numbers, sums + PLACE * Mma::SUMS_PER_TILE, epilogue.lane);
#pragma unroll
            for (int i = 0; i < Accumulators::NUMBERS_PER_TILE; ++i) {
                const int row = Accumulators::row_of(i), place = Accumulators::place_of(i);
                to[row * (8 * Shape::WINDOW_PITCH) + place] =
                    numbers[i] + overlap[row][TILE * (2 * Shape::OUTPUTS_PER_STEP) + place];
            }
            if constexpr ((STEP_OF + 1) % Shape::STEPS_PER_WINDOW == 0)
                epilogue.drain((STEP_OF + 1) * Shape::OUTPUTS_PER_STEP - Shape::OUTPUTS_PER_WINDOW);
            put_overlap<TILE + 1>(epilogue, lane_window, overlap, sums);
        } else if constexpr (Shape::OUTPUTS_PER_RUN % Shape::OUTPUTS_PER_WINDOW != 0) {
            epilogue.drain(Shape::OUTPUTS_PER_RUN / Shape::OUTPUTS_PER_WINDOW * Shape::OUTPUTS_PER_WINDOW);
        }
    }

    // Waits until all rows of the block have stored the shares that the rows before them add.
    __device__ __forceinline__ static void rows_have_left()
    {
        __syncthreads();
    }
};
