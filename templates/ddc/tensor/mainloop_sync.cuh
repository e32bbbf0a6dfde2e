// Mainloop, by mma.sync: it goes part after part, and decodes the next part while tensor cores multiply this one.
// Needs     Shape; Decode: DecodeHalves; Fragments: WeightFragments; Pipeline: CpAsyncPipeline; Output: Epilogue;
//           part.cuh (Words, Operands, load_words), mma_sync.cuh (Tile, multiply_add)
// Provides  MainloopSync: run, for a warp, once
// The first product of a step that adds to a tile also moves the tile to the place before its own, since mma.sync may
// write sums to other registers than it reads. At the end of the step, the tile at place 0 is finished.
template <class Shape, class Decode, class Fragments, class Pipeline, class Output>
struct MainloopSync {
    typedef Tile Tiles[Shape::N_TILES][Shape::OCTETS_PER_TILE];
    static_assert(Shape::BITS_PER_STEP % 32 == 0);
    static_assert(Shape::MMAS_PER_STEP * Shape::SAMPLES_PER_MMA == Shape::SAMPLES_PER_STEP);
    static_assert(Shape::STEPS_PER_STAGE % Shape::STEPS_PER_ITERATION == 0, "whole iterations a stage");
    static_assert(Shape::STEPS_PER_WINDOW % Shape::STEPS_PER_ITERATION == 0, "whole iterations a window");
    static_assert(Shape::DRIFT == 0, "rows start alike within 16 bytes");

    Words<Shape> words;  // words of the next part
    Operands<Shape> part;  // operands of the part at hand
    Tiles tiles = {};  // sums

    // Processes the runs of a warp, step after step. `lane_words` is the lane's first word in its first row of the
    // first stage.
    __device__ __forceinline__ void run(
        Pipeline& pipeline, Output& epilogue, const Decode& decode, const unsigned* lane_words,
        const Fragments& weights)
    {
        pipeline.wait_for_stage();
        const unsigned* from = lane_words;
        load_words<Shape>(words, from);
        decode_part(part, words, decode);
        int slot = 0;
        int stage_end = Shape::STEPS_PER_STAGE - Shape::WARM_UP_STEPS;
#pragma unroll 1
        for (int step = -Shape::WARM_UP_STEPS; step < Shape::END_STEP;) {
#pragma unroll
            for (int i = 0; i < Shape::STEPS_PER_ITERATION * Shape::PARTS_PER_STEP; ++i) {
                Operands<Shape> next;
                if (i + 1 < Shape::STEPS_PER_ITERATION * Shape::PARTS_PER_STEP) {
                    load_words<Shape>(words, from + (i + 1) * Shape::PART_STRIDE);
                } else {
                    from += Shape::STEPS_PER_ITERATION * Shape::PARTS_PER_STEP * Shape::PART_STRIDE;
                    if (step + Shape::STEPS_PER_ITERATION == Shape::END_STEP) {
                        from = lane_words + slot * STAGE_WORDS;  // these words are decoded, but not used
                    } else if (step + Shape::STEPS_PER_ITERATION == stage_end) {
                        __syncwarp();  // nobody reads the stage any more
                        pipeline.begin_stage();
                        pipeline.wait_for_stage();
                        slot = slot + 1 < Shape::N_STAGES ? slot + 1 : 0;
                        from = lane_words + slot * STAGE_WORDS + pipeline.shift();
                        stage_end += Shape::STEPS_PER_STAGE;
                    }
                    load_words<Shape>(words, from);
                }
                multiply_part(tiles, part, weights, i % Shape::PARTS_PER_STEP);
                decode_part(next, words, decode);
                if (i % Shape::PARTS_PER_STEP == Shape::PARTS_PER_STEP - 1)
                    put(epilogue, tiles[0], step, i / Shape::PARTS_PER_STEP);
#pragma unroll
                for (int w = 0; w < Shape::MMAS_PER_PART * 4; ++w)
                    part[w / 4][w % 4] = next[w / 4][w % 4];
            }
            step += Shape::STEPS_PER_ITERATION;
            if (step > 0 && step % Shape::STEPS_PER_WINDOW == 0)
                epilogue.drain(step * Shape::OUTPUTS_PER_STEP - Shape::OUTPUTS_PER_WINDOW);
        }
    }

private:
    static constexpr int STAGE_WORDS = Shape::ROWS_PER_WARP * Shape::STAGE_PITCH * 4;

    __device__ __forceinline__ static void decode_part(
        Operands<Shape>& operands, const Words<Shape>& words, const Decode& decode)
    {
        decode.decode(operands, words);
#pragma unroll
        for (int i = 0; i < Shape::MMAS_PER_PART * 4; ++i)
            operands[i / 4][i % 4] = Decode::unbiased(operands[i / 4][i % 4]);
    }

    // Adds the products of part number `part` of a step, MMAS_PER_PART fragments of samples times weights, to all
    // tiles. The first product of a step reads each tile from the place behind; at the last place a new tile begins.
    __device__ __forceinline__ static void multiply_part(
        Tiles& tiles, const Operands<Shape>& samples, const Fragments& weights, int part)
    {
        constexpr Tile NEW = {};
        if constexpr (Shape::MMAS_PER_CHAIN == 0) {
#pragma unroll
            for (int k = 0; k < Shape::MMAS_PER_PART; ++k) {
#pragma unroll
                for (int i = 0; i < Shape::N_TILES * Shape::OCTETS_PER_TILE; ++i) {
                    const int t = i / Shape::OCTETS_PER_TILE, o = i % Shape::OCTETS_PER_TILE;
                    const uint2 b = weights.fragment(Shape::N_TILES - 1 - t, part * Shape::MMAS_PER_PART + k, o);
                    const int from = part == 0 && k == 0 ? t + 1 : t;
                    tiles[t][o] =
                        multiply_add(samples[k], b, from < Shape::N_TILES ? tiles[from % Shape::N_TILES][o] : NEW);
                }
            }
        } else {
#pragma unroll
            for (int i = 0; i < Shape::N_TILES * Shape::OCTETS_PER_TILE; ++i) {
                const int t = i / Shape::OCTETS_PER_TILE, o = i % Shape::OCTETS_PER_TILE;
                Tile chain = NEW;
#pragma unroll
                for (int k = 0; k < Shape::MMAS_PER_PART; ++k) {
                    const uint2 b = weights.fragment(Shape::N_TILES - 1 - t, part * Shape::MMAS_PER_PART + k, o);
                    chain = multiply_add(samples[k], b, chain);
                }
                const int from = part == 0 ? t + 1 : t;
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    tiles[t][o].at[c] =
                        (from < Shape::N_TILES ? tiles[from % Shape::N_TILES][o].at[c] : 0.0f) + chain.at[c];
            }
        }
    }

    // Puts the tile of step `step` + `u` into the window. A lane has one part of one output per octet, in two rows.
    __device__ __forceinline__ static void put(
        const Output& epilogue, const Tile (&tile)[Shape::OCTETS_PER_TILE], int step, int u)
    {
        const int first = (step & (Shape::STEPS_PER_WINDOW - 1)) * (2 * Shape::OUTPUTS_PER_STEP);
        float* const at = epilogue.window + epilogue.lane / 4 * Shape::WINDOW_PITCH + epilogue.lane % 4 + first;
#pragma unroll
        for (int o = 0; o < Shape::OCTETS_PER_TILE; ++o) {
            const int place = (u * Shape::OUTPUTS_PER_STEP + 2 * o) * 2;
            at[place] = tile[o].at[0] + tile[o].at[1] * 0x1p-11f;
            at[place + 8 * Shape::WINDOW_PITCH] = tile[o].at[2] + tile[o].at[3] * 0x1p-11f;
        }
    }
};
