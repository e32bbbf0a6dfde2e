// ALGORITHM tensor, MMA wgmma: the products of ddc/tensor.cuh, by the four warps of a warpgroup together and while they
// unpack the samples of the next step. The runs of the four are the 64 rows of a product.
// Steps   as there: STEP_SAMPLES new samples of each row, and STEP more outputs done. A tile stays in the place where
//         it began, since wgmma adds to sums where they are. So the weights move: they lie in shared memory as a
//         ring of blocks, unrolled, and each step reads it from one block further back.
//             blocks in memory     0  L-1 L-2 ..  1   0  L-1 ..  1       L = LIVE
//             step v, v % L = 0   |tile places 0 to L-1|                  place i meets block (v - i) mod L:
//                     v % L = 1                  |tile places 0 to L-1|   the tile begun at step v is at place v mod L
//         The code of LIVE steps is written out, so that places are registers. A loop that ends in its middle, to copy
//         samples or to store outputs, goes on there.
// Time    step v starts its products; unpacks the samples of step v + 1, whose words are in registers, and loads the
//         words of step v + 2; waits for the products; takes the outputs that are done out of the sums, to the window,
//         and leaves zeros for a new tile. No products go on where the loop ends: ptxas would give those of each step
//         registers of their own.
// Columns and windows as there. For sm_90a only.
#include <cuda_fp16.h>

constexpr int STEP = {{ config.STEP }};  // outputs of a row that a step begins
constexpr int RUN = {{ config.RUN }};  // outputs of a row
constexpr int STAGE = {{ config.STAGE }};  // steps whose samples are copied together
constexpr int STAGES = {{ config.STAGES }};  // such copies that there is room for
constexpr int WINDOW = {{ config.WINDOW }};  // outputs of a row between stores
constexpr int CHAIN = 0;  // all products of a sum are added by the tensor core

constexpr int WARPS = WGS / 32;
constexpr int ROWS = 16;  // of a warp
constexpr int STEP_SAMPLES = STEP * DECIMATION;
constexpr int K_STEPS = STEP_SAMPLES / 16;
constexpr int LIVE = ceil_div(TAPS + (STEP - 1) * DECIMATION, STEP_SAMPLES);
constexpr int OCTETS = STEP / 2;  // of columns
constexpr int COLUMNS = LIVE * OCTETS * 8;
constexpr int FRAGMENTS = LIVE * K_STEPS * OCTETS;  // of weights
constexpr int WARM_UP = LIVE - 1;  // steps before the first outputs of a run are done
constexpr int TASK_STEPS = WARM_UP + RUN / STEP;
constexpr int TASK_STAGES = ceil_div(TASK_STEPS, STAGE);
constexpr int WINDOW_STEPS = WINDOW / STEP;
constexpr int FIRST_PLACE = (WINDOW_STEPS - WARM_UP % WINDOW_STEPS) % WINDOW_STEPS;  // of a task's first step in it
constexpr int WINDOW_PITCH = 2 * WINDOW + 4;  // words; 4 modulo 32, for stores by 8 rows of 4 lanes without conflicts
static_assert(WARPS % 4 == 0, "whole warpgroups");
static_assert(LIVE == {{ live }} && COLUMNS <= 256, "the steps that are written out; what a product takes");
static_assert(STAGE >= 2, "samples of a stage's first two steps are there when a task begins");
static_assert(STEP % 2 == 0 && STEP_SAMPLES % 16 == 0 && STEP_SAMPLES * SAMPLE_BITS % 32 == 0, "whole words a step");
static_assert(WINDOW % STEP == 0 && RUN % WINDOW == 0, "whole steps a window, whole windows a run");
static_assert(static_cast<long long>(RUN) * DECIMATION * SAMPLE_BITS % 128 == 0, "rows start alike within 16 bytes");

{% include "ddc/tensor_decode.cuh" %}

{% include "ddc/tensor_copy.cuh" %}

{% include "ddc/tensor_wgmma_ring.cuh" %}

constexpr bool SHARED_WEIGHTS = true;  // the fragments of the weights are only a step towards the ring
constexpr int MIXED_BYTES = ceil_div(8 * TAPS + 4 * WARPS, 16) * 16;
constexpr int FRAGMENT_BYTES = FRAGMENTS * 32 * 8;
constexpr int WINDOWS_BYTES = WARPS * ROWS * WINDOW_PITCH * 4;
constexpr int FRAGMENTS_AT = MIXED_BYTES;
constexpr int SCRATCH_BYTES =
    FRAGMENTS_AT + FRAGMENT_BYTES > WINDOWS_BYTES ? FRAGMENTS_AT + FRAGMENT_BYTES : WINDOWS_BYTES;

struct Shared {
    alignas(16) Ring ring;
    alignas(16) uint4 stages[WARPS][STAGES][ROWS][PITCH];
    alignas(16) unsigned char scratch[SCRATCH_BYTES];  // mixed weights and their fragments, then the windows
};
static_assert(sizeof(Shared) == {{ shared_bytes }}, "what the definition asks for at launch");

{% include "ddc/tensor_weights.cuh" %}

struct Tile {
    float at[4];  // rows l4 l3 l2 and 8 + l4 l3 l2, two columns of each
};

{% include "ddc/tensor_store.cuh" %}

typedef float Sum;
typedef Sum Sums[COLUMNS / 2];  // [LIVE][OCTETS][4]: tiles
typedef unsigned Samples[K_STEPS][4];

{% with widths = (4 * live * config.STEP,), element = "f16", sum = "f32", register = "f" %}
{% include "lib/wgmma.cuh" %}
{% endwith %}

{% include "ddc/tensor_wgmma_step.cuh" %}

extern "C" __global__ void __launch_bounds__(WGS, {{ min_blocks }}) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes)
{
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const Frequency frequency = {frequency_high, frequency_low};
    float2* const row = baseband + n_out * blockIdx.y;
    const int lead = lead_of(row);
    // Of the first task's first row; below 0 where it starts before the buffer. Exact: `lead` is of whole bytes.
    long long first_byte = row_bytes * blockIdx.y - static_cast<long long>(lead) * DECIMATION * SAMPLE_BITS / 8;
    const int skew = PAIRED && first_byte % 2 != 0 ? 4 : 0;  // samples, 5 bytes
    first_byte -= skew * SAMPLE_BITS / 8;
    Copier copier(
        shared.stages[warp], samples, row_bytes * gridDim.y, first_byte & ~15ll,
        blockIdx.x * WARPS + warp, n_out + lead + first_output(warp));  // as many tasks as the block's first warp
#pragma unroll
    for (int i = 0; i < STAGES; ++i)
        copier.next_stage();

    const float scale = mix_weights(shared.scratch, weights, frequency, skew);
    fill_ring(shared.ring, reinterpret_cast<const uint2*>(shared.scratch + FRAGMENTS_AT));
    const unsigned ring = address_of(shared.ring);
    const Decoder decoder(static_cast<int>(first_byte & 15));
    Writer writer(shared.scratch, row, n_out, lead, frequency, phase, scale);
    float* const lane_window = writer.window + lane / 4 * WINDOW_PITCH + lane % 4;
    const unsigned* const lane_words =
        reinterpret_cast<const unsigned*>(shared.stages[warp][0][lane / 4]) + decoder.first_word();

    int slot = 0;
    // All warps of a block make as many tasks as its first one, since products need them all; what is too much is zeros
    // and is not stored.
    for (int task = blockIdx.x * WARPS; first_output(task) < n_out + lead; task += gridDim.x * WARPS) {
        writer.begin(first_output(task + warp));
        Sums sums = {};
        Samples samples;
        Words words;
        const unsigned* next = begin_stage(words, lane_words, slot) + PART_WORDS;
        decode_step<0>(samples, words, next, true, decoder);
        next += STEP_WORDS;
        int step = -WARM_UP;
        int stage_end = stage_end_after(step - 1);
        int window_end = step - FIRST_PLACE + WINDOW_STEPS;
        float* to = lane_window + FIRST_PLACE * (2 * STEP);  // so that step 0 comes first in its window
#pragma unroll 1
        while (step < RUN / STEP) {
            const int end = kept(step < stage_end && stage_end < window_end ? stage_end : window_end);
            switch ((step + WARM_UP) % LIVE) {
{% for i in range(live) %}
            case {{ i }}:
                take_step<{{ i }}>(sums, samples, words, next, step + 1 < stage_end, to, ring, decoder);
                next += STEP_WORDS, to += 2 * STEP;
                if (++step == end)
                    break;
{% endfor %}
            }
            if (step == window_end) {
                if (step > 0)
                    writer.drain(step * STEP - WINDOW);
                to = lane_window;
                window_end += WINDOW_STEPS;
            }
            if (step == RUN / STEP - 1) {
                next = lane_words + slot * (ROWS * PITCH * 4);  // what the last step makes of it is not used
            } else if (step == stage_end) {
                __syncwarp();  // nobody reads the stage any more
                copier.next_stage();
                slot = slot + 1 < STAGES ? slot + 1 : 0;
                next = begin_stage(words, lane_words, slot) + PART_WORDS;
                stage_end = stage_end_after(step);
            }
        }
        copier.next_stage();  // nobody reads the last stage any more: drain() ended in a barrier
        slot = slot + 1 < STAGES ? slot + 1 : 0;
    }
}
