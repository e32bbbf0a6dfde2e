// ALGORITHM tensor: the filter as a product of matrices, on tensor cores.
// Work    a warp <-> ROWS runs of RUN consecutive outputs; a run is a row of the matrices
//         a block <-> WARPS warps that share nothing but the mixed weights; polarisation blockIdx.y
// Step    STEP_SAMPLES new samples of each row become fragments of halves, K_STEPS of them. A step begins STEP outputs
//         of each row, a tile; LIVE tiles are under way, and the samples meet a different block of weights in each:
//             samples of step v      |  0  |  1  |  2  |  3  | ...         block q of the weights of output s:
//             tile 0  (outputs 0, 1) | w 0 | w 1 | w 2 | done                  h[q STEP_SAMPLES + k - s D]
//             tile 1  (outputs 2, 3)       | w 0 | w 1 | w 2 | done        for sample k of the step: the output's
//             tile 2  (outputs 4, 5)             | w 0 | w 1 | ...         later start is zeros in front of it
//         so that no sample is unpacked or moved twice. A tile moves to the place before its own with the product that
//         adds to it, since sums may be written to other registers than they are read from: place 0 is done.
// Columns 4 for each output: real and imaginary part, each with high and low halves of the weights; the low ones are
//         2^11 times too large. A lane's two columns are the high and low part of the same number.
// Window  finished outputs go to shared memory, and from there WINDOW a row to the baseband, 256 bytes a store.
//         Runs start `lead` outputs before output 0, so that each such store starts at a multiple of 128 bytes.

constexpr int STEP = {{ config.STEP }};  // outputs of a row that a step begins
constexpr int RUN = {{ config.RUN }};  // outputs of a row
constexpr int STAGE = {{ config.STAGE }};  // steps whose samples are copied together
constexpr int STAGES = {{ config.STAGES }};  // such copies that there is room for
constexpr int UNROLL = {{ config.UNROLL }};  // steps without a loop
constexpr int WINDOW = {{ config.WINDOW }};  // outputs of a row between stores
constexpr int CHAIN = {{ chain }};  // products of a sum that the tensor core adds before float32 does; 0: all
constexpr int MOST_PART = CHAIN > 0 ? CHAIN : 2;  // products whose samples are in registers together
constexpr bool SHARED_WEIGHTS = {{ shared_weights }};  // or in registers

constexpr int WARPS = WGS / 32;
constexpr int ROWS = 16;
constexpr int STEP_SAMPLES = STEP * DECIMATION;
constexpr int STEP_BITS = STEP_SAMPLES * SAMPLE_BITS;
constexpr int PRODUCT = 16;  // samples of a row that a product takes
constexpr int K_STEPS = STEP_SAMPLES / PRODUCT;
constexpr int LIVE = ceil_div(TAPS + (STEP - 1) * DECIMATION, STEP_SAMPLES);
constexpr int OCTETS = STEP / 2;  // of columns
constexpr int FRAGMENTS = LIVE * K_STEPS * OCTETS;  // of weights
constexpr int WARM_UP = ceil_div(LIVE - 1, UNROLL) * UNROLL;  // steps before the first outputs of a run are done
constexpr int TASK_STEPS = WARM_UP + RUN / STEP;
constexpr int TASK_STAGES = ceil_div(TASK_STEPS, STAGE);
constexpr int WINDOW_PITCH = 2 * WINDOW + 4;  // words; 4 modulo 32, for stores by 8 rows of 4 lanes without conflicts
static_assert(STEP % 2 == 0 && STEP_SAMPLES % PRODUCT == 0, "whole octets of columns, and whole products, a step");
static_assert(STEP_BITS % 32 == 0, "and whole words");
static_assert(STAGE % UNROLL == 0, "whole turns of the loop a stage");
static_assert(WINDOW / STEP % UNROLL == 0 && RUN % WINDOW == 0, "whole turns of the loop a window");
static_assert(static_cast<long long>(RUN) * DECIMATION * SAMPLE_BITS % 128 == 0, "rows start alike within 16 bytes");

{% include "ddc/tensor_decode.cuh" %}

{% include "ddc/tensor_copy.cuh" %}

{% include "ddc/tensor_mixed.cuh" %}

constexpr int FRAGMENT_BYTES = FRAGMENTS * 32 * 8;
constexpr int WINDOWS_BYTES = WARPS * ROWS * WINDOW_PITCH * 4;
constexpr int FRAGMENTS_AT = SHARED_WEIGHTS && WINDOWS_BYTES > MIXED_BYTES ? WINDOWS_BYTES : MIXED_BYTES;
constexpr int MADE_BYTES = FRAGMENTS_AT + FRAGMENT_BYTES > WINDOWS_BYTES ? FRAGMENTS_AT + FRAGMENT_BYTES : WINDOWS_BYTES;

struct Shared {
    alignas(16) uint4 stages[WARPS][STAGES][ROWS][PITCH];
    alignas(16) unsigned char scratch[MADE_BYTES];  // mixed weights and their fragments, then the windows
};
static_assert(sizeof(Shared) == {{ shared_bytes }}, "what the definition asks for at launch");

{% include "ddc/tensor_split_halves.cuh" %}

{% include "ddc/tensor_weights.cuh" %}

{% include "ddc/tensor_fragments.cuh" %}

// Of a task, counted from the first one's.
__device__ __forceinline__ long long first_output(int task)
{
    return static_cast<long long>(task) * (ROWS * RUN);
}

struct Tile {
    float at[4];  // rows l4 l3 l2 and 8 + l4 l3 l2, two columns of each
};
typedef Tile Tiles[LIVE][OCTETS];
typedef unsigned Samples[PART_STEPS][4];  // of a part: a lane's fragments

// a b + c
__device__ __forceinline__ Tile multiply_add(const unsigned (&a)[4], uint2 b, const Tile& c)
{
    Tile sum = c;
#ifdef AUTOTUNE_HOST
    const unsigned words[2] = {b.x, b.y};
    cuda_host_mma_m16n8k16_f16(sum.at, a, words);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %0, %1, %2, %3}, { %4, %5, %6, %7}, { %8, %9}, "
        "{ %10, %11, %12, %13};"
        : "=f"(sum.at[0]), "=f"(sum.at[1]), "=f"(sum.at[2]), "=f"(sum.at[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "f"(c.at[0]), "f"(c.at[1]), "f"(c.at[2]),
          "f"(c.at[3]));
#endif
    return sum;
}

{% include "ddc/tensor_store.cuh" %}

// To the window, the tile of step `step` + `u`: a lane has one part of one output of an octet, for two rows.
__device__ __forceinline__ void put(const Writer& writer, const Tile (&tile)[OCTETS], int step, int u)
{
    const int first = (step & (WINDOW / STEP - 1)) * (2 * STEP);
    float* const at = writer.window + writer.lane / 4 * WINDOW_PITCH + writer.lane % 4 + first;
#pragma unroll
    for (int o = 0; o < OCTETS; ++o) {
        at[(u * STEP + 2 * o) * 2] = tile[o].at[0] + tile[o].at[1] * 0x1p-11f;
        at[(u * STEP + 2 * o) * 2 + 8 * WINDOW_PITCH] = tile[o].at[2] + tile[o].at[3] * 0x1p-11f;
    }
}

// Part number `part` of a step, PART_STEPS fragments of samples, times its weights, added to all tiles. What the first
// product of a step adds to is the tile in the place behind; behind the last there is a new one.
__device__ __forceinline__ void multiply_part(Tiles& tiles, const Samples& samples, const Weights& weights, int part)
{
    constexpr Tile NEW = {};
    if constexpr (CHAIN == 0) {
#pragma unroll
        for (int k = 0; k < PART_STEPS; ++k) {
#pragma unroll
            for (int i = 0; i < LIVE * OCTETS; ++i) {
                const int t = i / OCTETS, o = i % OCTETS;
                const uint2 b = weights.fragment(LIVE - 1 - t, part * PART_STEPS + k, o);
                const int from = part == 0 && k == 0 ? t + 1 : t;
                tiles[t][o] = multiply_add(samples[k], b, from < LIVE ? tiles[from % LIVE][o] : NEW);
            }
        }
    } else {
#pragma unroll
        for (int i = 0; i < LIVE * OCTETS; ++i) {
            const int t = i / OCTETS, o = i % OCTETS;
            Tile chain = NEW;
#pragma unroll
            for (int k = 0; k < PART_STEPS; ++k)
                chain = multiply_add(samples[k], weights.fragment(LIVE - 1 - t, part * PART_STEPS + k, o), chain);
            const int from = part == 0 ? t + 1 : t;
#pragma unroll
            for (int c = 0; c < 4; ++c)
                tiles[t][o].at[c] = (from < LIVE ? tiles[from % LIVE][o].at[c] : 0.0f) + chain.at[c];
        }
    }
}

__device__ __forceinline__ void unpack(Samples& samples, const Words& words, const Decoder& decoder)
{
    decoder.decode(samples, words);
#pragma unroll
    for (int i = 0; i < PART_STEPS * 4; ++i)
        samples[i / 4][i % 4] = unbiased(samples[i / 4][i % 4]);
}

extern "C" __global__ void __launch_bounds__(WGS, {{ min_blocks }}) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes)
{
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // the same in all lanes, as the compiler sees, too
    const int lane = kept(static_cast<int>(threadIdx.x % 32));  // to read threadIdx again would take longer
    Fetched fetched;
    fetch_weights(fetched, weights);
    const Frequency frequency = {frequency_high, frequency_low};
    float2* const row = baseband + n_out * blockIdx.y;
    const int lead = lead_of(row);
    // The last task first: where samples end, copies take longer.
    const int task = (gridDim.x - 1 - blockIdx.x) * WARPS + warp;
    // Of the warp's first row; below 0 where it starts before the buffer. Exact: `lead` is of whole bytes.
    long long first_byte = row_bytes * blockIdx.y + task * (ROWS * ROW_BYTES)
        - (static_cast<long long>(lead) + (WARM_UP - LIVE + 1) * STEP) * DECIMATION * SAMPLE_BITS / 8;
    const int skew = skew_of(first_byte);
    first_byte -= skew * SAMPLE_BITS / 8;
    Copier copier(lane, shared.stages[warp], samples, row_bytes * gridDim.y, first_byte);
    LanePair pair(lane, row, lead);
#pragma unroll 1  // the code of stages once
    for (int i = 0; i < STAGES; ++i) {
        copier.next_stage();
        if (i == 0) {  // while the first one's copies wait for each other, and weights are on their way
            pair.make_turns(frequency);
            pair.scale_turns(mix_weights(shared.scratch, fetched, frequency));
        }
    }
    const Weights fragments(shared.scratch, skew);
    const Decoder decoder(static_cast<int>(first_byte & 15));
    float* const window = reinterpret_cast<float*>(shared.scratch) + warp * (ROWS * WINDOW_PITCH);
    Writer writer(lane, window, row, n_out, lead, frequency, phase, pair, first_output(task), ROWS);
    const unsigned* const lane_words =
        reinterpret_cast<const unsigned*>(shared.stages[warp][0][lane / 4]) + decoder.first_word();

    if (first_output(task) >= n_out + lead)
        return;
    copier.wait_for_stage();
    const unsigned* from = lane_words;
    Words words;
    load_part(words, from);
    Samples part;
    unpack(part, words, decoder);
    Tiles tiles = {};
    int slot = 0;
    int stage_end = STAGE - WARM_UP;
#pragma unroll 1
    for (int step = -WARM_UP; step < RUN / STEP;) {
        // Part after part: the next one's samples are unpacked while tensor cores multiply this one's.
#pragma unroll
        for (int i = 0; i < UNROLL * PARTS; ++i) {
            Samples next;
            if (i + 1 < UNROLL * PARTS) {
                load_part(words, from + (i + 1) * PART_WORDS);
            } else {
                from += UNROLL * PARTS * PART_WORDS;
                if (step + UNROLL == RUN / STEP) {
                    from = lane_words + slot * (ROWS * PITCH * 4);  // what becomes of these words is not used
                } else if (step + UNROLL == stage_end) {
                    __syncwarp();  // nobody reads the stage any more
                    copier.next_stage();
                    copier.wait_for_stage();
                    slot = slot + 1 < STAGES ? slot + 1 : 0;
                    from = lane_words + slot * (ROWS * PITCH * 4) + copier.shift();
                    stage_end += STAGE;
                }
                load_part(words, from);
            }
            multiply_part(tiles, part, fragments, i % PARTS);
            unpack(next, words, decoder);
            if (i % PARTS == PARTS - 1)
                put(writer, tiles[0], step, i / PARTS);
#pragma unroll
            for (int w = 0; w < PART_STEPS * 4; ++w)
                part[w / 4][w % 4] = next[w / 4][w % 4];
        }
        step += UNROLL;
        if (step > 0 && step % (WINDOW / STEP) == 0)
            writer.drain(step * STEP - WINDOW);
    }
}
