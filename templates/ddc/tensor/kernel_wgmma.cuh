// ALGORITHM tensor, MMA wgmma or wgmma_int8: the four warps of a warpgroup make the products of kernel_sync.cuh
// together, while they decode the samples of the next step. The runs of the four warps are the 64 rows of a product.
// For sm_90a only.
// Steps   As in kernel_sync.cuh, a step takes SAMPLES_PER_STEP new samples of each row and completes OUTPUTS_PER_STEP
//         outputs. A tile stays in the place where it began, since wgmma adds to sums in place. So the weights move:
//         they are an unrolled ring of blocks in shared memory, which each step reads from one block further back.
//             blocks in memory     0  L-1 L-2 ..  1   0  L-1 ..  2       L = N_TILES
//             step v, v % L = 0   |tile places 0 to L-1|                  place i meets block (v - i) mod L:
//                     v % L = 1                  |tile places 0 to L-1|   the tile begun at step v is at place v mod L
//         Either the code of L steps is written out, so that places are registers (mainloop_unrolled.cuh). Or the code
//         is that of one step, and runs overlap (mainloop_rolled.cuh). Then sums may move instead, each step to the
//         place before their own, and blocks L-1 L-2 .. 0 stay, which takes half the shared memory.
// wgmma       Operands are halves, and sums are float32. Columns are those of kernel_sync.cuh.
// wgmma_int8  Operands are bytes, and sums are exact, in int32. accumulators_bytes.cuh has their columns.

{% include "ddc/tensor/shape.cuh" %}

{% include "ddc/tensor/part.cuh" %}

{% if shape.takes_bytes %}
{% include "ddc/tensor/decode_fields.cuh" if shape.takes_fields else "ddc/tensor/decode_bytes.cuh" %}

{% include "ddc/tensor/weights_as_bytes.cuh" %}

{% include "ddc/tensor/accumulators_bytes.cuh" %}

typedef {{ "DecodeFields" if shape.takes_fields else "DecodeBytes" }}<Shape> Decode;
typedef WeightBytes<Shape, Decode> Weights;
typedef AccumulatorsBytes<Shape, Weights> Accumulators;
{% else %}
{% include "ddc/tensor/decode_halves.cuh" %}

{% include "ddc/tensor/weights_as_halves.cuh" %}

{% include "ddc/tensor/accumulators_halves.cuh" %}

typedef DecodeHalves<Shape> Decode;
typedef WeightHalves<Shape, Decode> Weights;
typedef AccumulatorsHalves<Shape> Accumulators;
{% endif %}

{% include "ddc/tensor/weights_mixed.cuh" %}

{% include "ddc/tensor/weights_ring.cuh" %}

{% include "ddc/tensor/pipeline_cp_async.cuh" %}

{% include "ddc/tensor/pipeline_tma.cuh" %}

{% include "ddc/tensor/epilogue.cuh" %}

typedef Accumulators::Sum Sum;

{% with element = "s8" if shape.takes_bytes else "f16", sum = "s32" if shape.takes_bytes else "f32", register = "r" if shape.takes_bytes else "f", widths = (shape.columns_per_mma,), starts = shape.mmas_per_chain > 0, row_element = "u8" if shape.operands_per_sample > 1 else "" %}
{% include "lib/wgmma.cuh" %}
{% endwith %}

{% include "ddc/tensor/mma_wgmma.cuh" %}

{% include "ddc/tensor/mainloop_rolled.cuh" if shape.runs_overlap else "ddc/tensor/mainloop_unrolled.cuh" %}

typedef MixedWeights<Shape, Weights> Mixed;
typedef WeightRing<Shape, Weights> Ring;
typedef TmaPipeline<Shape> Pipeline;
typedef Epilogue<Shape> Output;
typedef Wgmma<Shape, Accumulators> Mma;
{% if shape.runs_overlap %}
typedef MainloopRolled<Shape, Decode, Weights, Ring, Mma, Accumulators, Pipeline, Output> Mainloop;
{% else %}
typedef MainloopUnrolled<Shape, Decode, Ring, Mma, Pipeline, Output> Mainloop;
{% endif %}

struct Shared {
    alignas(16) Ring ring;
    alignas(16) uint4 stages[Shape::N_WARPS][Shape::N_STAGES][Shape::ROWS_PER_WARP][Shape::STAGE_PITCH];  // 128 aligned
    alignas(16) unsigned char scratch[Shape::SCRATCH_BYTES];  // mixed weights, then windows
    alignas(16) unsigned long long barriers[Shape::N_WARPS][Shape::N_STAGES];
};
static_assert(sizeof(Shared) == Shape::SHARED_BYTES, "what the definition asks for at launch");
static_assert(sizeof(Ring) % 128 == 0, "boxes start at multiples of 128 bytes");
static_assert(sizeof(Mixed) <= Shape::MIXED_BYTES, "what is set aside for it");
static_assert(Shape::N_WARPS % 4 == 0 && Shape::COLUMNS_PER_MMA <= 256, "whole warpgroups, and what a product takes");

extern "C" __global__ void __launch_bounds__(Shape::N_THREADS, Shape::MIN_BLOCKS) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes, const __grid_constant__ TensorMap map)
{
    constexpr int ROWS_PER_WARP = Shape::ROWS_PER_WARP;
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that lanes agree
    const int lane = opaque(static_cast<int>(threadIdx.x % 32));  // reading threadIdx again would take longer
    Mixed::Fetched fetched;
    Mixed::fetch(fetched, weights);
    const Frequency frequency = {frequency_high, frequency_low};
    float2* const row = baseband + n_out * blockIdx.y;
    const int lead = Output::lead_of(row);
    // The warp's first run is `run`. Runs past the last output are zeros, since products need all four warps.
    constexpr int RUNS_PER_BLOCK = Shape::N_WARPS * ROWS_PER_WARP - Shape::RUNS_OVERLAP;
    const long long run = static_cast<long long>(blockIdx.x) * RUNS_PER_BLOCK + warp * ROWS_PER_WARP;
    // The first byte of the warp's first row; below 0 it lies before the buffer. It is exact, since the samples of
    // `lead` outputs are whole bytes.
    long long first_byte = row_bytes * blockIdx.y + run * Shape::RUN_BYTES
        - static_cast<long long>(lead) * DECIMATION * SAMPLE_BITS / 8;
    const int skew = Decode::skew_of(first_byte);
    first_byte -= skew * SAMPLE_BITS / 8;
    Pipeline pipeline(
        lane, shared.stages[warp], samples, row_bytes * gridDim.y, first_byte, shared.barriers[warp], map);
    Output::Pair pair(lane, row, lead);
#pragma unroll 1  // so that the code of a stage exists once
    for (int i = 0; i < Shape::N_STAGES; ++i) {
        pipeline.begin_stage(0);
        if (i == 0) {  // meanwhile the first stage and the weights are on their way
            pair.make_phasors(frequency);
            pair.scale_phasors(Mixed::mix(shared.scratch, fetched, frequency));
        }
    }
    shared.ring.fill(shared.scratch, skew, warp, lane);
    float* const window = reinterpret_cast<float*>(shared.scratch) + warp * (ROWS_PER_WARP * Shape::WINDOW_PITCH);
    // The warpgroup is needed if some of its outputs are stored, or if it completes outputs of the runs before it.
    const int n_before = Shape::RUNS_OVERLAP ? Shape::WARM_UP_STEPS * Shape::OUTPUTS_PER_STEP : 0;
    const bool is_needed = (run - warp % 4 * ROWS_PER_WARP) * Shape::OUTPUTS_PER_RUN - n_before < n_out + lead;
    if (!is_needed) {
        pipeline.wait_for_begun();  // a block may have no outputs, but must not end before its copies
        Mainloop::skip(window, lane);
        return;
    }
    const unsigned ring = shared.ring.address();
    Decode decode(pipeline.pieces.offset + pipeline.pieces.drift);
    const int n_rows = Shape::RUNS_OVERLAP && warp + 1 == Shape::N_WARPS ? ROWS_PER_WARP - 1 : ROWS_PER_WARP;
    Output output(lane, window, row, n_out, lead, frequency, phase, pair, run * Shape::OUTPUTS_PER_RUN, n_rows);
    float* const lane_window = window + Accumulators::first_row_of(lane) * Shape::WINDOW_PITCH
        + Accumulators::first_number_of(lane);
    const unsigned* const rows = reinterpret_cast<const unsigned*>(shared.stages[warp][0][lane / 4]);
    Mainloop::run(pipeline, output, decode, rows, lane_window, ring);
}
