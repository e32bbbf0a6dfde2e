// ALGORITHM tensor, MMA mma_sync: the filter is a product of matrices, on tensor cores.
// Work    a warp <-> ROWS_PER_WARP runs of OUTPUTS_PER_RUN consecutive outputs; a run is a row of the matrices
//         a block <-> N_WARPS warps that share the mixed weights and nothing else; polarisation blockIdx.y
// Step    A step decodes SAMPLES_PER_STEP new samples of each row to MMAS_PER_STEP fragments of halves. It begins
//         OUTPUTS_PER_STEP outputs of each row, which are a tile. N_TILES tiles are under way, and the samples are
//         multiplied by a different block of weights for each:
//             samples of step v      |  0  |  1  |  2  |  3  | ...         block q of the weights of output s:
//             tile 0  (outputs 0, 1) | w 0 | w 1 | w 2 | done                  h[q SAMPLES_PER_STEP + k - s D]
//             tile 1  (outputs 2, 3)       | w 0 | w 1 | w 2 | done        for sample k of the step; zeros in front
//             tile 2  (outputs 4, 5)             | w 0 | w 1 | ...         make up for an output's later start
//         So no sample is decoded or moved twice.
// Columns An output has 4 columns: real and imaginary part, each with high and low halves of the weights. The low
//         halves are 2^11 times too large. A lane's two columns are the high and low part of the same number.
// Window  Finished outputs go to shared memory. From there OUTPUTS_PER_WINDOW outputs of a row at a time go to the
//         baseband, 256 bytes per store.

{% include "ddc/tensor/shape.cuh" %}

{% include "ddc/tensor/part.cuh" %}

{% include "ddc/tensor/decode_halves.cuh" %}

{% include "ddc/tensor/weights_as_halves.cuh" %}

{% include "ddc/tensor/weights_mixed.cuh" %}

{% include "ddc/tensor/weights_fragments.cuh" %}

{% include "ddc/tensor/pipeline_cp_async.cuh" %}

{% include "ddc/tensor/epilogue.cuh" %}

{% include "ddc/tensor/mma_sync.cuh" %}

{% include "ddc/tensor/mainloop_sync.cuh" %}

typedef DecodeHalves<Shape> Decode;
typedef WeightHalves<Shape, Decode> Weights;
typedef MixedWeights<Shape, Weights> Mixed;
typedef WeightFragments<Shape, Weights> Fragments;
typedef CpAsyncPipeline<Shape, true> Pipeline;
typedef Epilogue<Shape> Output;
typedef MainloopSync<Shape, Decode, Fragments, Pipeline, Output> Mainloop;

struct Shared {
    alignas(16) uint4 stages[Shape::N_WARPS][Shape::N_STAGES][Shape::ROWS_PER_WARP][Shape::STAGE_PITCH];
    alignas(16) unsigned char scratch[Shape::SCRATCH_BYTES];  // mixed weights and their fragments, then the windows
};
static_assert(sizeof(Shared) == Shape::SHARED_BYTES, "what the definition asks for at launch");
static_assert(sizeof(Mixed) <= Shape::MIXED_BYTES, "what is set aside for it");

// Returns the first output of a task, counted from the first output of task 0.
__device__ __forceinline__ long long first_output(int task)
{
    return static_cast<long long>(task) * (Shape::ROWS_PER_WARP * Shape::OUTPUTS_PER_RUN);
}

extern "C" __global__ void __launch_bounds__(Shape::N_THREADS, Shape::MIN_BLOCKS) ddc(
    float2* __restrict__ baseband, const unsigned char* __restrict__ samples, const float* __restrict__ weights,
    unsigned long long frequency_high, unsigned long long frequency_low, unsigned long long phase, long long n_out,
    long long row_bytes)
{
    extern __shared__ float4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // tells the compiler that lanes agree
    const int lane = opaque(static_cast<int>(threadIdx.x % 32));  // reading threadIdx again would take longer
    Mixed::Fetched fetched;
    Mixed::fetch(fetched, weights);
    const Frequency frequency = {frequency_high, frequency_low};
    float2* const row = baseband + n_out * blockIdx.y;
    const int lead = Output::lead_of(row);
    // The first block takes the last tasks: copies near the end of the samples take longer.
    const int task = (gridDim.x - 1 - blockIdx.x) * Shape::N_WARPS + warp;
    // A task's samples begin so many outputs before those of its first output, since the warm-up is whole iterations
    // and may be longer than necessary.
    constexpr int N_BEFORE = (Shape::WARM_UP_STEPS - Shape::N_TILES + 1) * Shape::OUTPUTS_PER_STEP;
    // The first byte of the warp's first row; below 0 it lies before the buffer. It is exact, since the samples of
    // `lead` outputs are whole bytes.
    long long first_byte = row_bytes * blockIdx.y + task * (Shape::ROWS_PER_WARP * Shape::RUN_BYTES)
        - (static_cast<long long>(lead) + N_BEFORE) * DECIMATION * SAMPLE_BITS / 8;
    const int skew = Decode::skew_of(first_byte);
    first_byte -= skew * SAMPLE_BITS / 8;
    Pipeline pipeline(lane, shared.stages[warp], samples, row_bytes * gridDim.y, first_byte);
    Output::Pair pair(lane, row, lead);
#pragma unroll 1  // so that the code of a stage exists once
    for (int i = 0; i < Shape::N_STAGES; ++i) {
        pipeline.begin_stage();
        if (i == 0) {  // meanwhile the first stage and the weights are on their way
            pair.make_phasors(frequency);
            pair.scale_phasors(Mixed::mix(shared.scratch, fetched, frequency));
        }
    }
    const Fragments fragments(shared.scratch, skew);
    const Decode decode(static_cast<int>(first_byte & 15));
    float* const window =
        reinterpret_cast<float*>(shared.scratch) + warp * (Shape::ROWS_PER_WARP * Shape::WINDOW_PITCH);
    Output output(lane, window, row, n_out, lead, frequency, phase, pair, first_output(task), Shape::ROWS_PER_WARP);
    const unsigned* const lane_words =
        reinterpret_cast<const unsigned*>(shared.stages[warp][0][lane / 4]) + (decode.bit >> 5);

    if (first_output(task) >= n_out + lead)
        return;
    Mainloop mainloop;
    mainloop.run(pipeline, output, decode, lane_words, fragments);
}
