// The kernel: a block walks over its batches, and over the antennas of each, a stage at a time. Warps wait for each
// other only where they make weights. With ALGORITHM mma_sync, Beams come from another file.
// Needs     tile.cuh (Tile, tile_of), copy.cuh (Copier), weights.cuh (Weights), finish.cuh (Output),
//           threads.cuh (Beams), lib/async.cuh (wait_for_groups)
// Provides  beamform

// One block per multiprocessor is enough. To make room for more, the compiler would spill registers.
extern "C" __global__ void __launch_bounds__(N_THREADS, 1) beamform(
    unsigned char* __restrict__ beams, unsigned* __restrict__ saturated, const unsigned char* __restrict__ voltages,
    const float2* __restrict__ weights, const float* __restrict__ delays,
{% if not problem.mixes %}
    const unsigned char* __restrict__ pols,
{% endif %}
    const unsigned char* __restrict__ present, int n_antennas, int n_channels, int first_batch, int n_used,
    int first_channel, int n_all_channels, int seed, long long first_time)
{
    extern __shared__ uint4 dynamic_shared[];
    unsigned char* shared = reinterpret_cast<unsigned char*>(dynamic_shared);
    unsigned char* made = shared + RING_BYTES + SCALE_BYTES;
    const Tile tile = tile_of(blockIdx.x, n_used);
    const int warp = threadIdx.x / 32;
    unsigned char* ring = shared + warp * (STAGES * STAGE_BYTES);
    const int own_time = tile.time + warp * WARP_TIMES;  // the warp's first
    const int channel = first_channel + tile.channel;
    const long long row = static_cast<long long>(tile.channel) * N_TIMES + own_time;
    const int n_stages = (n_antennas + ANTENNAS - 1) / ANTENNAS;
    const int first = first_batch + tile.begin, end = first_batch + tile.end;

    Copier copier{voltages + row * JONES_BYTES, present, static_cast<long long>(n_channels) * ROW_BYTES, n_antennas,
                  ROW_BYTES - own_time * JONES_BYTES, first, end, 0, 0};
    copier.look();
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i)
        copier.copy(ring + i * STAGE_BYTES);

    const Weights turned{weights, delays, n_antennas, 0.5f * static_cast<float>(2 * channel - n_all_channels)};
    Beams sums({{ "nullptr" if problem.mixes else "pols" }}, tile.beam, shared + RING_BYTES);
    sums.prepare(turned);
    if constexpr (KEPT) {
        if (first < end)  // of the same for all threads
            sums.make_weights(made, turned, 0, (n_antennas + GROUP - 1) / GROUP * GROUP);
        __syncthreads();  // all weights are there
    }
    const Output output{beams + static_cast<long long>(tile.channel) * N_TIMES * 2, saturated,
                        static_cast<long long>(n_channels) * N_TIMES * 2, static_cast<unsigned>(seed),
                        static_cast<unsigned>(channel), first_time};

    int buffer = 0;
#pragma unroll 1
    for (int batch = first; batch < end; ++batch) {
        sums.clear();
#pragma unroll 1
        for (int stage = 0; stage < n_stages; ++stage) {
            if constexpr (!KEPT) {
                __syncthreads();  // nobody reads the weights of the stage before any more
                sums.make_weights(made, turned, stage * ANTENNAS, ANTENNAS);
                __syncthreads();  // the weights of the stage are there
            }
            wait_for_groups<STAGES - 2>();
            __syncwarp();  // all lanes' copies are complete, and nobody reads the stage before any more
            copier.copy(ring + (buffer == 0 ? STAGES - 1 : buffer - 1) * STAGE_BYTES);
            const int n = n_antennas - stage * ANTENNAS;
            if (own_time < N_TIMES)  // else the warp only makes weights
                sums.add_stage(ring + buffer * STAGE_BYTES,
                               made + (KEPT ? stage * (ANTENNAS * BEAMS * WEIGHT_BYTES) : 0), n < ANTENNAS ? n : ANTENNAS);
            buffer = buffer == STAGES - 1 ? 0 : buffer + 1;
        }
        if (own_time < N_TIMES)
            sums.finish(output, batch, own_time);
    }
}
