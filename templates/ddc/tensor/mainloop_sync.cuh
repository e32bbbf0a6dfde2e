// Mainloop, by mma.sync: part after part; the next part is decoded while tensor cores multiply this one.
// Needs     S: Shape; D: DecodeHalves; F: WeightFragments; P: CpAsyncPipeline; E: Epilogue; part.cuh, mma_sync.cuh
// Provides  MainloopSync: run, for a warp, once
// A tile moves to the place before its own with the product that adds to it, since sums may be written to other
// registers than they are read from: place 0 is done.
template <class S, class D, class F, class P, class E>
struct MainloopSync {
    typedef Tile Tiles[S::N_TILES][S::OCTETS_PER_TILE];
    static_assert(S::BITS_PER_STEP % 32 == 0 && S::MMAS_PER_STEP * S::SAMPLES_PER_MMA == S::SAMPLES_PER_STEP);
    static_assert(S::STEPS_PER_STAGE % S::STEPS_PER_ITERATION == 0, "whole iterations a stage");
    static_assert(S::STEPS_PER_WINDOW % S::STEPS_PER_ITERATION == 0, "whole iterations a window");
    static_assert(S::DRIFT == 0, "rows start alike within 16 bytes");

    Words<S> words;  // of the next part
    Operands<S> part;  // the one at hand
    Tiles tiles = {};  // sums

    // Takes the runs of a warp, step after step. `lane_words`: the lane's first word of its first row of the first
    // stage.
    __device__ __forceinline__ void run(
        P& pipeline, E& epilogue, const D& decode, const unsigned* lane_words, const F& weights)
    {
        pipeline.wait_for_stage();
        const unsigned* from = lane_words;
        load_words<S>(words, from);
        decode_part(part, words, decode);
        int slot = 0;
        int stage_end = S::STEPS_PER_STAGE - S::WARM_UP_STEPS;
#pragma unroll 1
        for (int step = -S::WARM_UP_STEPS; step < S::END_STEP;) {
#pragma unroll
            for (int i = 0; i < S::STEPS_PER_ITERATION * S::PARTS_PER_STEP; ++i) {
                Operands<S> next;
                if (i + 1 < S::STEPS_PER_ITERATION * S::PARTS_PER_STEP) {
                    load_words<S>(words, from + (i + 1) * S::PART_STRIDE);
                } else {
                    from += S::STEPS_PER_ITERATION * S::PARTS_PER_STEP * S::PART_STRIDE;
                    if (step + S::STEPS_PER_ITERATION == S::END_STEP) {
                        from = lane_words + slot * STAGE_WORDS;  // what becomes of these words is not used
                    } else if (step + S::STEPS_PER_ITERATION == stage_end) {
                        __syncwarp();  // nobody reads the stage any more
                        pipeline.begin_stage();
                        pipeline.wait_for_stage();
                        slot = slot + 1 < S::N_STAGES ? slot + 1 : 0;
                        from = lane_words + slot * STAGE_WORDS + pipeline.shift();
                        stage_end += S::STEPS_PER_STAGE;
                    }
                    load_words<S>(words, from);
                }
                multiply_part(tiles, part, weights, i % S::PARTS_PER_STEP);
                decode_part(next, words, decode);
                if (i % S::PARTS_PER_STEP == S::PARTS_PER_STEP - 1)
                    put(epilogue, tiles[0], step, i / S::PARTS_PER_STEP);
#pragma unroll
                for (int w = 0; w < S::MMAS_PER_PART * 4; ++w)
                    part[w / 4][w % 4] = next[w / 4][w % 4];
            }
            step += S::STEPS_PER_ITERATION;
            if (step > 0 && step % S::STEPS_PER_WINDOW == 0)
                epilogue.drain(step * S::OUTPUTS_PER_STEP - S::OUTPUTS_PER_WINDOW);
        }
    }

private:
    static constexpr int STAGE_WORDS = S::ROWS_PER_WARP * S::STAGE_PITCH * 4;

    __device__ __forceinline__ static void decode_part(Operands<S>& operands, const Words<S>& words, const D& decode)
    {
        decode.decode(operands, words);
#pragma unroll
        for (int i = 0; i < S::MMAS_PER_PART * 4; ++i)
            operands[i / 4][i % 4] = D::unbiased(operands[i / 4][i % 4]);
    }

    // Adds part number `part` of a step, MMAS_PER_PART fragments of samples times its weights, to all tiles. What the
    // first product of a step adds to is the tile in the place behind; behind the last there is a new one.
    __device__ __forceinline__ static void multiply_part(
        Tiles& tiles, const Operands<S>& samples, const F& weights, int part)
    {
        constexpr Tile NEW = {};
        if constexpr (S::MMAS_PER_CHAIN == 0) {
#pragma unroll
            for (int k = 0; k < S::MMAS_PER_PART; ++k) {
#pragma unroll
                for (int i = 0; i < S::N_TILES * S::OCTETS_PER_TILE; ++i) {
                    const int t = i / S::OCTETS_PER_TILE, o = i % S::OCTETS_PER_TILE;
                    const uint2 b = weights.fragment(S::N_TILES - 1 - t, part * S::MMAS_PER_PART + k, o);
                    const int from = part == 0 && k == 0 ? t + 1 : t;
                    tiles[t][o] = multiply_add(samples[k], b, from < S::N_TILES ? tiles[from % S::N_TILES][o] : NEW);
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < S::N_TILES * S::OCTETS_PER_TILE; ++i) {
                const int t = i / S::OCTETS_PER_TILE, o = i % S::OCTETS_PER_TILE;
                Tile chain = NEW;
#pragma unroll
                for (int k = 0; k < S::MMAS_PER_PART; ++k) {
                    const uint2 b = weights.fragment(S::N_TILES - 1 - t, part * S::MMAS_PER_PART + k, o);
                    chain = multiply_add(samples[k], b, chain);
                }
                const int from = part == 0 ? t + 1 : t;
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    tiles[t][o].at[c] = (from < S::N_TILES ? tiles[from % S::N_TILES][o].at[c] : 0.0f) + chain.at[c];
            }
        }
    }

    // Puts the tile of step `step` + `u` into the window: a lane has one part of one output of an octet, for two rows.
    __device__ __forceinline__ static void put(
        const E& epilogue, const Tile (&tile)[S::OCTETS_PER_TILE], int step, int u)
    {
        const int first = (step & (S::STEPS_PER_WINDOW - 1)) * (2 * S::OUTPUTS_PER_STEP);
        float* const at = epilogue.window + epilogue.lane / 4 * S::WINDOW_PITCH + epilogue.lane % 4 + first;
#pragma unroll
        for (int o = 0; o < S::OCTETS_PER_TILE; ++o) {
            const int place = (u * S::OUTPUTS_PER_STEP + 2 * o) * 2;
            at[place] = tile[o].at[0] + tile[o].at[1] * 0x1p-11f;
            at[place + 8 * S::WINDOW_PITCH] = tile[o].at[2] + tile[o].at[3] * 0x1p-11f;
        }
    }
};
