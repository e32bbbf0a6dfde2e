// Mainloop, rolled: the code of one step, for chains that are cut (CHAIN 8) and for bytes; runs overlap.
// Needs     S: Shape; D: Decode..; W: Weight..; R: WeightRing; M: Wgmma; A: Accumulators; P: TmaPipeline; E: Epilogue;
//           lib/opaque.cuh, lib/wgmma.cuh, part.cuh
// Provides  MainloopRolled: run, for a warpgroup; skip, instead of it
// Chains  Products of halves are cut into chains of MMAS_PER_CHAIN at most: a chain has registers of its own, and
//         float32 adds it to the sums, and moves these as it adds a step's last one. Products of bytes are exact, and
//         all added to the sums by the tensor core.
// Parts   of a step: MMAS_PER_PART products, whose operands are in registers together; the last part may have fewer.
//             part p     |finish p|decode p + 1, load p + 2|finish p + 1|decode p + 2, load p + 3| ..
//                                 |  products of p         ..            |  products of p + 1   ..
//         Products take operands from two sets of registers by turns. The compiler would not decode between the start
//         of products and a wait for them, so the wait is for those of the part before; where a chain ends, for all.
//         Behind a step's last part follows the next step's first one. The words of a step are all loaded before its
//         last two parts: there the stage may end, and the next one's words follow without a gap.
// Loop    the code of one step, of at least two parts. Where sums stay, its only piece that depends on the place is the
//         one that takes the outputs that are done, for each place another; where they move, it is the first place.
// Runs    of a block's rows are consecutive. The outputs that the samples of a run begin and do not end are those that
//         the samples of the next run end and do not begin: overlap-add. The first WARM_UP_STEPS steps of a row leave
//         what it has of the run before it behind its window; at the end each row adds what the next one left to the
//         outputs that are still open. The last row of a block is there for that alone: the next block begins with it.
template <class S, class D, class W, class R, class M, class A, class P, class E>
struct MainloopRolled {
    typedef typename M::Sum Sum;
    typedef typename M::Sums Sums;
    typedef Sum DoneTile[M::SUMS_PER_TILE];
    static constexpr bool CUTS_CHAINS = S::MMAS_PER_CHAIN > 0;
    static constexpr int PARTS_PER_CHAIN = S::MMAS_PER_CHAIN / S::MMAS_PER_PART;
    static_assert(S::PARTS_PER_STEP >= 2, "words are loaded two parts ahead");
    static_assert(S::RUNS_OVERLAP && S::END_STEP > 0, "what a run leaves open ends in the next one");
    static_assert(!CUTS_CHAINS || (S::MMAS_PER_CHAIN % S::MMAS_PER_PART == 0 && S::SUMS_MOVE),
        "whole parts a chain, and sums that move as it is added");

    // Takes the runs of a warpgroup, step after step. `rows`: the lane's first row of the first stage.
    __device__ __forceinline__ static void run(
        P& pipeline, E& epilogue, D& decode, const unsigned* rows, float* lane_window, unsigned ring)
    {
        Stages stages(pipeline, rows, decode.bit);
        Sums sums = {};
        Operands<S> decoded;
        Words<S> words;
        const unsigned* from = stages.words();
        load_words<S>(words, from, S::mmas_of_part(0));
        decode.decode(decoded, words, S::mmas_of_part(0));
        load_words<S>(words, from + S::PART_STRIDE, S::mmas_of_part(1));
        float* to = lane_window + (S::WARM_UP_STEPS > 0 ? S::OVERLAP_AT : 0);
        int window_end = S::WARM_UP_STEPS > 0 ? 0 : S::STEPS_PER_WINDOW;
        // The compiler cannot tell that it is 0: it would keep a zero for each register of a tile, and move them
        // all from there.
        Sum zero = 0;
        if constexpr (!S::SUMS_MOVE)
            zero = opaque(static_cast<int>(blockIdx.z));
        int block = 0;  // of weights, that the first place meets
#pragma unroll 1
        for (int step = -S::WARM_UP_STEPS; step < S::END_STEP;) {
            DoneTile done;
            take_step(done, sums, decoded, words, from, stages, step, ring, block, decode);
            if constexpr (S::SUMS_MOVE) {
                M::put_tile(to, done, epilogue.lane);
            } else {
                put_place_of<0, S::N_TILES - 1>(block, to, sums, epilogue.lane, zero);
                block = block > 0 ? block - 1 : S::N_TILES - 1;
            }
            to += 2 * S::OUTPUTS_PER_STEP;
            if (++step == window_end) {
                if (step == 0)
                    rows_have_left();
                else
                    epilogue.drain(step * S::OUTPUTS_PER_STEP - S::OUTPUTS_PER_WINDOW);
                to = lane_window;
                window_end += S::STEPS_PER_WINDOW;
            }
        }
        // There is no row behind the block's last one; what becomes of that one is not stored.
        const float* const overlap = lane_window + S::OVERLAP_AT + S::WINDOW_PITCH;
        const int n_behind = epilogue.n_rows - A::first_row_of(epilogue.lane);  // rows, from the lane's first one on
        const float* const first = overlap - (n_behind < 1) * S::WINDOW_PITCH;
        put_overlap<0>(epilogue, lane_window, {first, overlap + (n_behind < 9 ? 7 : 8) * S::WINDOW_PITCH}, sums);
    }

    // Stands for `run` where no outputs are needed: the other warpgroups have the tensor cores for themselves. What is
    // added to the row before the warp's `window` is not stored either.
    __device__ __forceinline__ static void skip(float* window, int lane)
    {
        if (S::WARM_UP_STEPS > 0) {
            for (int i = lane; i < 2 * S::OUTPUTS_PER_STEP * S::WARM_UP_STEPS; i += 32)
                window[S::OVERLAP_AT + i] = 0.0f;
            rows_have_left();
        }
    }

private:
    static constexpr int LAST_GROUPS =  // of a step's last part
        ceil_div(S::mmas_of_part(S::PARTS_PER_STEP - 1) * S::GROUPS_PER_PART, S::MMAS_PER_PART);

    // The stages of a warp, which it loads words from one after the other.
    struct Stages {
        P& pipeline;
        const unsigned* const rows;  // the lane's first row of the first one
        int slot;  // of the one at hand
        unsigned parity;
        int end;  // the step behind it
        int bit;  // of the lane's first group of a step, in its row

        __device__ __forceinline__ Stages(P& pipeline, const unsigned* rows, int bit)
            : pipeline(pipeline), rows(rows), slot(0), parity(0), end(S::STEPS_PER_STAGE - S::WARM_UP_STEPS), bit(bit)
        {
            pipeline.wait_for_stage(slot, parity);
        }

        // Returns the lane's words of the step.
        __device__ __forceinline__ const unsigned* words() const
        {
            return rows + slot * (S::ROWS_PER_WARP * S::STAGE_PITCH * 4) + (bit >> 5);
        }

        // Returns the words of the step behind `step`, whose last part's are `words_of_last`.
        __device__ __forceinline__ const unsigned* next_step(int step, const Words<S>& words_of_last)
        {
            if (step == S::END_STEP - 1)
                return words();  // what becomes of these is not used
            bit += S::BITS_PER_STEP;
            if (step + 1 == end) {
                __syncwarp();  // nobody reads the stage any more
                unsigned loaded = 0;
#pragma unroll
                for (int i = 0; i < 2 * LAST_GROUPS * S::WORDS_PER_GROUP; ++i) {
                    const int g = i / S::WORDS_PER_GROUP % LAST_GROUPS;
                    loaded |= words_of_last[i / (LAST_GROUPS * S::WORDS_PER_GROUP)][g][i % S::WORDS_PER_GROUP];
                }
                pipeline.follow_stage(loaded);
                if (++slot == S::N_STAGES)
                    slot = 0, parity ^= 1;
                pipeline.wait_for_stage(slot, parity);
                end += S::STEPS_PER_STAGE;
                bit = pipeline.pieces.start + pipeline.pieces.drift * 8 + threadIdx.x % 4 * S::BITS_PER_GROUP;
            }
            return words();
        }
    };

    // Adds the products of a step with the N_TILES blocks of weights from `block` on to the sums; where these move, the
    // first of them are then `done`. decoded: the operands of its first part; words: of its second; from: where its
    // words are. All three are then the next step's.
    __device__ __forceinline__ static void take_step(
        DoneTile& done, Sums& sums, Operands<S>& decoded, Words<S>& words, const unsigned*& from, Stages& stages,
        int step, unsigned ring, int block, D& decode)
    {
        Sums chain;
        Operands<S> taken[2];
#pragma unroll
        for (int part = 0; part < S::PARTS_PER_STEP; ++part) {
            if (part == S::PARTS_PER_STEP - 2)
                from = stages.next_step(step, words);
            M::finish(taken[part % 2], decoded, decode, S::mmas_of_part(part) * S::OPERANDS_PER_SAMPLE);
            begin_products();
#pragma unroll
            for (int k = 0; k < S::MMAS_PER_PART; ++k) {
                if (k >= S::mmas_of_part(part))
                    continue;
                const unsigned (&operand)[4] = taken[part % 2][k * S::OPERANDS_PER_SAMPLE];
                const int product = part * S::MMAS_PER_PART + k;
                const unsigned long long blocks = R::blocks_of(ring, product, block, W::COLUMNS_EARLIER);
                if constexpr (CUTS_CHAINS) {
                    if (part % PARTS_PER_CHAIN == 0 && k == 0)
                        M::template product<false>(chain, operand, blocks);
                    else
                        M::template product<true>(chain, operand, blocks);
                } else {
                    M::template product<true>(sums, operand, blocks);
                    if constexpr (S::OPERANDS_PER_SAMPLE > 1)
                        M::product_of_lower(sums, taken[part % 2][k * 2 + 1], R::blocks_of(ring, product, block));
                }
            }
            close_products();
            if (S::BITS_PER_STEP % 32 != 0 && part == S::PARTS_PER_STEP - 1)
                decode.align_to(stages.bit);  // the next step's first part
            decode.decode(decoded, words, S::mmas_of_part((part + 1) % S::PARTS_PER_STEP));  // while the products go on
            const int loaded = (part + 2) % S::PARTS_PER_STEP;
            load_words<S>(words, from + loaded * S::PART_STRIDE, S::mmas_of_part(loaded));
            if constexpr (CUTS_CHAINS) {
                if (part % PARTS_PER_CHAIN == PARTS_PER_CHAIN - 1 || part == S::PARTS_PER_STEP - 1) {
                    M::wait(chain);
                    if (part == S::PARTS_PER_STEP - 1) {
                        move_sums(done, sums, chain);
                    } else {
#pragma unroll
                        for (int i = 0; i < S::COLUMNS_PER_MMA / 2; ++i)
                            sums[i] += chain[i];
                    }
                    continue;
                }
            } else if (part == S::PARTS_PER_STEP - 1) {
                M::wait(sums);
                if constexpr (S::SUMS_MOVE)
                    move_sums(done, sums, chain);
                continue;
            }
            wait_for_products<1>();  // the part before is done: its operands' registers are free
        }
    }

    // Takes the first tile out of the sums, after adding the chain's if there is one. The others move to the places
    // before their own, and leave zeros for a new one.
    __device__ __forceinline__ static void move_sums(DoneTile& done, Sums& sums, const Sums& chain)
    {
#pragma unroll
        for (int i = 0; i < S::N_TILES * M::SUMS_PER_TILE; ++i) {
            Sum& to = i < M::SUMS_PER_TILE ? done[i] : sums[i - M::SUMS_PER_TILE];
            if constexpr (CUTS_CHAINS)
                to = sums[i] + chain[i];
            else
                to = sums[i];
        }
#pragma unroll
        for (int i = 0; i < M::SUMS_PER_TILE; ++i)
            sums[(S::N_TILES - 1) * M::SUMS_PER_TILE + i] = 0;
    }

    // Puts the outputs that are done when blocks from `block` on have been met, which is from FIRST to LAST: few
    // comparisons.
    template <int FIRST, int LAST>
    __device__ __forceinline__ static void put_place_of(int block, float* to, Sums& sums, int lane, Sum zero)
    {
        if constexpr (FIRST == LAST) {
            M::template put_place<(S::N_TILES - FIRST + 1) % S::N_TILES>(to, sums, lane, zero);
        } else {
            constexpr int MIDDLE = (FIRST + LAST) / 2;
            if (block <= MIDDLE)
                put_place_of<FIRST, MIDDLE>(block, to, sums, lane, zero);
            else
                put_place_of<MIDDLE + 1, LAST>(block, to, sums, lane, zero);
        }
    }

    // Puts, behind the last step, the outputs that it leaves open, tile after tile, added to what the next rows have of
    // them; `overlap`: where the lane's first one is, for both its rows. `lane_window`: where the window begins for the
    // lane.
    template <int TILE>
    __device__ __forceinline__ static void put_overlap(
        E& epilogue, float* lane_window, const float* const (&overlap)[2], const Sums& sums)
    {
        if constexpr (TILE < S::WARM_UP_STEPS) {
            constexpr int STEP_OF = S::END_STEP + TILE;
            constexpr int PLACE = S::SUMS_MOVE ? TILE : (S::STEPS_PER_RUN + 1 + TILE) % S::N_TILES;
            float* const to = lane_window + STEP_OF % S::STEPS_PER_WINDOW * (2 * S::OUTPUTS_PER_STEP);
            float numbers[A::NUMBERS_PER_TILE];
            A::numbers_of(numbers, sums + PLACE * M::SUMS_PER_TILE, epilogue.lane);
#pragma unroll
            for (int i = 0; i < A::NUMBERS_PER_TILE; ++i)
                to[A::row_of(i) * (8 * S::WINDOW_PITCH) + A::place_of(i)] =
                    numbers[i] + overlap[A::row_of(i)][TILE * (2 * S::OUTPUTS_PER_STEP) + A::place_of(i)];
            if constexpr ((STEP_OF + 1) % S::STEPS_PER_WINDOW == 0)
                epilogue.drain((STEP_OF + 1) * S::OUTPUTS_PER_STEP - S::OUTPUTS_PER_WINDOW);
            put_overlap<TILE + 1>(epilogue, lane_window, overlap, sums);
        } else if constexpr (S::OUTPUTS_PER_RUN % S::OUTPUTS_PER_WINDOW != 0) {
            epilogue.drain(S::OUTPUTS_PER_RUN / S::OUTPUTS_PER_WINDOW * S::OUTPUTS_PER_WINDOW);
        }
    }

    // All rows of the block have left what the rows before them add.
    __device__ __forceinline__ static void rows_have_left()
    {
        __syncthreads();
    }
};
