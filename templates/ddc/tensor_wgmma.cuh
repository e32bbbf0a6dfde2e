// ALGORITHM tensor, MMA wgmma or wgmma_int8: the products of ddc/tensor.cuh, by the four warps of a warpgroup together
// and while they unpack the samples of the next step. The runs of the four are the 64 rows of a product.
// Steps   as there: STEP_SAMPLES new samples of each row, and STEP more outputs done. A tile stays in the place where
//         it began, since wgmma adds to sums where they are. So the weights move: they lie in shared memory as a
//         ring of blocks, unrolled, and each step reads it from one block further back.
//             blocks in memory     0  L-1 L-2 ..  1   0  L-1 ..  1       L = LIVE
//             step v, v % L = 0   |tile places 0 to L-1|                  place i meets block (v - i) mod L:
//                     v % L = 1                  |tile places 0 to L-1|   the tile begun at step v is at place v mod L
//         The code of LIVE steps is written out, so that places are registers (tensor_wgmma_places.cuh), or there is
//         that of one, and runs overlap (tensor_wgmma_loop.cuh). Then sums may move instead, to the places before their
//         own with each step, and blocks L-1 L-2 .. 0 stay: half the shared memory.
// wgmma       halves, sums in float32. Columns as there.
// wgmma_int8  bytes, exact sums in int32. A column for each of the three bytes of the weights, of the real and of the
//             imaginary part of each output, byte after byte of a tile of up to four outputs. Samples of more than 8
//             bits are two bytes, and have columns of zeros behind these: the lower byte is multiplied with all, and
//             the upper one, which is worth 2^8 times as much, with those that start a byte earlier. Sums of byte i are
//             thus worth 2^8i. Two outputs have such zeros in any case, for whole octets.
// Windows as there. For sm_90a only.

constexpr int STEP = {{ config.STEP }};  // outputs of a row that a step begins
constexpr int RUN = {{ config.RUN }};  // outputs of a row
constexpr int STAGE = {{ config.STAGE }};  // steps whose samples are copied together
constexpr int STAGES = {{ config.STAGES }};  // such copies that there is room for
constexpr int WINDOW = {{ config.WINDOW }};  // outputs of a row between stores
constexpr int MOST_PART = {{ config.get("PART", 2) }};  // products whose samples are unpacked together

constexpr int WARPS = WGS / 32;
constexpr int ROWS = 16;  // of a warp
constexpr int STEP_SAMPLES = STEP * DECIMATION;
constexpr int STEP_BITS = STEP_SAMPLES * SAMPLE_BITS;
constexpr int PRODUCT = {{ product }};  // samples of a row that a product takes: 32 bytes
constexpr int K_STEPS = {{ products }};  // of a step; if they are not whole, samples of the next step fill them up
constexpr int LIVE = ceil_div(TAPS + (STEP - 1) * DECIMATION, STEP_SAMPLES);
constexpr int OCTETS = STEP * {{ columns }} / 8;  // of columns of a tile
constexpr int COLUMNS = (LIVE * OCTETS + {{ fills }}) * 8;  // of a product: an even number of octets of bytes, above 4
constexpr int WARM_UP = LIVE - 1;  // steps before the first outputs of a run are done
// Or runs take the samples of their last outputs, which the next runs begin with.
constexpr bool OVERLAPS = {{ "true" if overlaps else "false" }};
constexpr int TASK_STEPS = RUN / STEP + (OVERLAPS ? 0 : WARM_UP);
constexpr int END = TASK_STEPS - WARM_UP;  // the step behind the last one: step 0 is the first whose outputs are done
constexpr int TASK_STAGES = ceil_div(TASK_STEPS, STAGE);
constexpr int WINDOW_STEPS = WINDOW / STEP;
constexpr int OVERLAP_AT = 2 * WINDOW + 4;  // behind a row's outputs and their turns, what it has of the run before it
// Words; an odd multiple of 4, for stores by 8 rows of 4 lanes without conflicts.
constexpr int WINDOW_PITCH = OVERLAP_AT + (OVERLAPS ? ceil_div(2 * STEP * WARM_UP, 8) * 8 : 0);
static_assert(WARPS % 4 == 0, "whole warpgroups");
static_assert(LIVE == {{ live }} && COLUMNS <= 256, "as the definition has it; what a product takes");
static_assert(K_STEPS * PRODUCT >= STEP_SAMPLES, "products take all samples of a step");
static_assert(STEP * {{ columns }} % 8 == 0, "whole octets a step");
{% if not overlaps %}
static_assert(STAGE >= 2, "samples of a stage's first two steps are there when a task begins");
static_assert(STEP_BITS % 32 == 0 && K_STEPS * PRODUCT == STEP_SAMPLES, "as the code of LIVE steps takes them");
{% endif %}
static_assert(OVERLAPS || RUN % WINDOW == 0, "whole windows a run");
static_assert(END > 0, "what a run leaves open ends in the next one");

{% if element == "s8" %}
constexpr int SAMPLE_BYTES = {{ bytes }};

{% include "ddc/tensor_decode_fields.cuh" if by_fields else "ddc/tensor_decode_bytes.cuh" %}
{% else %}
constexpr int SAMPLE_BYTES = 1;  // operands that a sample is made into

{% include "ddc/tensor_decode.cuh" %}
{% endif %}

{% include "ddc/tensor_copy.cuh" %}

{% include "ddc/tensor_boxes.cuh" %}

{% include "ddc/tensor_mixed.cuh" %}

constexpr int WINDOWS_BYTES = WARPS * ROWS * WINDOW_PITCH * 4;
constexpr int SCRATCH_BYTES = MIXED_BYTES > WINDOWS_BYTES ? MIXED_BYTES : WINDOWS_BYTES;

constexpr bool SUMS_MOVE = {{ "true" if moves else "false" }};
constexpr int RING_BLOCKS = SUMS_MOVE ? LIVE : 2 * LIVE - 1;

constexpr int PIECE_WORDS = RING_BLOCKS * OCTETS * 32;  // of a product's first pieces

struct Ring {
{% if bytes > 1 %}
    unsigned before[32];  // an octet of zeros
{% endif %}
    unsigned words[K_STEPS][2][RING_BLOCKS][OCTETS][32];
{% if fills %}
    unsigned behind[32];
{% endif %}
};

struct Shared {
    alignas(16) Ring ring;
    alignas(16) uint4 stages[WARPS][STAGES][ROWS][PITCH];  // at a multiple of 128 bytes, as the ring has 128 an octet
    alignas(16) unsigned char scratch[SCRATCH_BYTES];  // mixed weights, and then the windows
    alignas(16) unsigned long long barriers[WARPS][STAGES];
};
static_assert(sizeof(Shared) == {{ shared_bytes }}, "what the definition asks for at launch");

{% if element == "s8" %}
{% include "ddc/tensor_split_bytes.cuh" %}
{% else %}
{% include "ddc/tensor_split_halves.cuh" %}
{% endif %}

{% include "ddc/tensor_weights.cuh" %}

{% include "ddc/tensor_wgmma_ring.cuh" %}

{% include "ddc/tensor_store.cuh" %}

{% set sum = "s32" if element == "s8" else "f32" %}
{% set register = "r" if element == "s8" else "f" %}
typedef {{ "int" if element == "s8" else "float" }} Sum;
typedef Sum Sums[COLUMNS / 2];  // [LIVE][OCTETS][4]: tiles

{% with widths = (sums * 2,), starts = chain > 0, row_element = "u8" if bytes > 1 else "" %}
{% include "lib/wgmma.cuh" %}
{% endwith %}

{% include "ddc/tensor_wgmma_step.cuh" %}

{% if overlaps %}
{% include "ddc/tensor_wgmma_loop.cuh" %}
{% else %}
{% include "ddc/tensor_wgmma_places.cuh" %}
{% endif %}

extern "C" __global__ void __launch_bounds__(WGS, {{ min_blocks }}) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes, const __grid_constant__ TensorMap map)
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
    // The warp's first run; past the last output: zeros, for products that need all warps.
    const long long run = static_cast<long long>(blockIdx.x) * (WARPS * ROWS - OVERLAPS) + warp * ROWS;
    // Of the warp's first row; below 0 where it starts before the buffer. Exact: `lead` is of whole bytes.
    long long first_byte = row_bytes * blockIdx.y + run * ROW_BYTES
        - static_cast<long long>(lead) * DECIMATION * SAMPLE_BITS / 8;
    const int skew = skew_of(first_byte);
    first_byte -= skew * SAMPLE_BITS / 8;
    StageCopier copier(
        lane, shared.stages[warp], samples, row_bytes * gridDim.y, first_byte, shared.barriers[warp], map);
    LanePair pair(lane, row, lead);
#pragma unroll 1  // the code of stages once
    for (int i = 0; i < STAGES; ++i) {
        copier.begin_stage(0);
        if (i == 0) {  // while the first one's copies wait for each other, and weights are on their way
            pair.make_turns(frequency);
            pair.scale_turns(mix_weights(shared.scratch, fetched, frequency));
        }
    }
    fill_ring(shared.ring, shared.scratch, skew, warp, lane);
    float* const window = reinterpret_cast<float*>(shared.scratch) + warp * (ROWS * WINDOW_PITCH);
    // Whether the warpgroup has outputs that are stored, or what those of the runs before it are completed with.
    const bool is_needed = (run - warp % 4 * ROWS) * RUN - (OVERLAPS ? WARM_UP * STEP : 0) < n_out + lead;
    if (!is_needed) {
        copier.wait_for_begun();  // a block without any, which long leads may need, must not end before them
        take_no_task(window, lane);
        return;
    }
    const unsigned ring = address_of(shared.ring);
    Decoder decoder(copier.pieces.offset + copier.pieces.drift);
    const int n_rows = OVERLAPS && warp + 1 == WARPS ? ROWS - 1 : ROWS;
    Writer writer(lane, window, row, n_out, lead, frequency, phase, pair, run * RUN, n_rows);
    float* const lane_window = window + first_row_of(lane) * WINDOW_PITCH + first_number_of(lane);
    const unsigned* const rows = reinterpret_cast<const unsigned*>(shared.stages[warp][0][lane / 4]);
    take_task(copier, writer, decoder, rows, lane_window, ring);
}
