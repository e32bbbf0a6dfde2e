// MMA mma_sync: all warps of a block copy, and all multiply; a ring of N_STAGES stages lies in shared memory, of which
// READ_AHEAD are under way while one is used.
// Needs     triangle.cuh (Block, block_of, first_of_slice), part.cuh (tile_number, Part, own_part), copy.cuh (Copier),
//           octet.cuh (lane_offset), warp_product.cuh (WarpProduct), lowest.cuh (Lowest),
//           lib/async.cuh (close_group, wait_for_groups)
// Provides  correlate
extern "C" __global__ void __launch_bounds__(N_THREADS) correlate(
    Result* __restrict__ results,
{% if problem.count_lowest %}
    unsigned long long* __restrict__ n_lowest,
{% endif %}
    const unsigned char* __restrict__ voltages, int n_channels, int n_batches, int first_batch, int n_used)
{
    extern __shared__ uint4 dynamic_shared[];
    unsigned char* ring = reinterpret_cast<unsigned char*>(dynamic_shared);
    const Block block = block_of(tile_number(), N_RECEIVERS);
    const bool square = ALL_UNITS == UNITS_J || (RECEIVERS_J == RECEIVERS_I && block.first_j == block.first_i);
    const int begin = first_of_slice(blockIdx.z, gridDim.z, n_used);
    const int of_slice = (first_of_slice(blockIdx.z + 1, gridDim.z, n_used) - begin) * BATCH_UNITS;
    const Part part = ATOMIC ? own_part(of_slice) : Part{0, of_slice};
    const int n_units = part.n;
    const int n_steps = (n_units + UNITS_PER_STAGE - 1) / UNITS_PER_STAGE;
    Copier<RECEIVERS_J> copier_j(voltages, n_channels, n_batches, block.first_j, first_batch + begin, n_units);
    Copier<RECEIVERS_I> copier_i(voltages, n_channels, n_batches, block.first_i, first_batch + begin, n_units);
    if constexpr (ATOMIC)
        copier_j.skip(part.first), copier_i.skip(part.first);
    const auto copy_unit = [&](int buffer, int unit) {
        unsigned char* to = ring + (buffer * UNITS_PER_STAGE + unit) * ALL_UNITS;
        copier_j.copy(to, true);
        copier_i.copy(to + UNITS_J, !square);
    };
    // A step that is past the slice is a group, too, so that the number of groups under way stays the same.
    const auto copy_step = [&](int buffer) {
#pragma unroll
        for (int unit = 0; unit < UNITS_PER_STAGE; ++unit)
            copy_unit(buffer, unit);
        close_group();
    };

{% if shape.cuts_pairs %}
    WarpProduct product(block, square);
    const bool is_needed = product.is_needed(), counts = product.counts();
{% else %}
    const int warp = threadIdx.x / 32;
    const int own_j = warp % WARPS_J * OCTETS_J * 8, own_i = warp / WARPS_J * OCTETS_I * 8;  // receivers of the block
    const int first_j = block.first_j + own_j, first_i = block.first_i + own_i;
    // A warp whose receivers are all above the diagonal, or past the last one, only copies.
    const bool is_needed = first_i < first_j + OCTETS_J * 8 && first_i < N_RECEIVERS && first_j < N_RECEIVERS;
    const int offset_j = own_j * UNIT_BYTES + lane_offset<false>();
    const int offset_i = own_i * UNIT_BYTES + lane_offset<true>() + (square ? 0 : UNITS_J);

    WarpProduct product;
{% endif %}
    product.clear();
    Lowest lowest;
    constexpr bool BEFORE = READ_AHEAD < N_STAGES - 1;  // whether copies go where nobody reads since the last barrier
    for (int step = 0; step < READ_AHEAD; ++step)
        copy_step(step);
    int buffer = 0;
#pragma unroll 1
    for (int step = 0; step < n_steps; ++step) {
        const int next = buffer + READ_AHEAD < N_STAGES ? buffer + READ_AHEAD : buffer + READ_AHEAD - N_STAGES;
        if constexpr (BEFORE)
            copy_step(next);
        wait_for_groups<BEFORE ? READ_AHEAD : READ_AHEAD - 1>();
        __syncthreads();  // the step is complete; and nobody reads the one before it any more
        const unsigned char* from = ring + buffer * UNITS_PER_STAGE * ALL_UNITS;
{% if shape.cuts_pairs %}
        if constexpr (!BEFORE)
            copy_step(next);
        if (is_needed)
            product.add_stage(from, lowest);
{% else %}
        if (is_needed) {
#pragma unroll
            for (int unit = 0; unit < UNITS_PER_STAGE; ++unit) {
                product.add_unit(from + unit * ALL_UNITS + offset_j, from + unit * ALL_UNITS + offset_i, lowest);
                if constexpr (!BEFORE)  // in the shadow of the products
                    copy_unit(next, unit);
            }
            if constexpr (!BEFORE)
                close_group();
        } else if constexpr (!BEFORE) {
            copy_step(next);
        }
{% endif %}
        buffer = buffer == N_STAGES - 1 ? 0 : buffer + 1;
    }
    if (is_needed && (OVERWRITES || n_steps > 0)) {
        constexpr long long N_BASELINES = N_RECEIVERS * (N_RECEIVERS + 1ll) / 2;
        const long long of_channel = blockIdx.z * static_cast<long long>(n_channels) + blockIdx.y;
        product.store(results + of_channel * N_BASELINES * 8{{ "" if shape.cuts_pairs else ", first_j, first_i" }});
    }
{% if problem.count_lowest %}
    if ({{ "counts" if shape.cuts_pairs else "first_i == 0" }} && is_needed)  // a warp for each later receiver
        lowest.report(n_lowest);
{% endif %}
}
