// MMA wgmma, for sm_90a only: the first warpgroup of a block copies, the last two multiply; one between them may
// convert.
//   stage       4 products along K of 64 later and 64 earlier receivers: UNITS_PER_STAGE units of a receiver
//   consumer    64 rows: both polarisations of 32 later receivers; 2 x N columns: of N earlier receivers, first all
//               polarisations a, then all b; each product twice, for real and for imaginary parts
{% if shape.converts %}
//   operand     what the tensor cores read of the earlier receivers: rows of 64 bytes, swizzled, for two products one
//               after the other: polarisation a of all receivers, then b. Converters make it of the voltages
{% else %}
//   operand     what the tensor cores read of the earlier receivers: rows of 64 bytes, swizzled, of a receiver's
//               polarisation a and then b, for one product: voltages as they are
{% endif %}
// Needs     triangle.cuh (Block, first_of_slice), part.cuh (tile_number, Part, own_part), wgmma_ring.cuh (Ring),
//           wgmma_chain.cuh (Chain, chain_of, Range),
//           wgmma_cluster.cuh (Member, member_of, NOBODY, Sides, Release), wgmma_copy.cuh (copy_slice, await_partners),
//           wgmma_convert.cuh (convert_slice), wgmma_multiply.cuh (multiply_slice, skip_slice), lowest.cuh (Lowest),
//           lib/tma.cuh (TensorMap, shared_address, init_barrier, publish_barriers), lib/cluster.cuh (sync_cluster),
//           lib/registers.cuh (give_registers, take_registers)
// Provides  correlate
{% if shape.blocks_per_cluster > 1 %}
extern "C" __global__ void __cluster_dims__(BLOCKS_PER_CLUSTER, 1, 1) __launch_bounds__(N_THREADS, 1) correlate(
{% else %}
extern "C" __global__ void __launch_bounds__(N_THREADS, 1) correlate(
{% endif %}
    Result* __restrict__ results,
{% if problem.count_lowest %}
    unsigned long long* __restrict__ n_lowest,
{% endif %}
    const unsigned char* __restrict__ voltages, int n_channels, int n_batches, int first_batch, int n_used,
    const __grid_constant__ TensorMap map)
{
    extern __shared__ __align__(1024) unsigned char dynamic_shared[];
    Ring ring(shared_address(dynamic_shared));
    const Member own = member_of(tile_number());
    if (threadIdx.x == 0) {
        const int n_blocks = 1 + (own.same_j != NOBODY) + (own.same_i != NOBODY);  // that this one copies to
        for (Ring each = ring; each.parity == 0; each.advance()) {
            init_barrier(each.copied(), 1);
            init_barrier(each.converted(), RECEIVERS_I / 32);
            init_barrier(each.released(), n_blocks * CONSUMERS * GROUP / 32);
        }
        publish_barriers();
    }
    if constexpr (BLOCKS_PER_CLUSTER > 1) {
        sync_cluster();  // the barriers of all blocks are ready
        if (!own.has_tile())
            return;
    } else {
        __syncthreads();  // the barriers are ready
    }

    const Block block = own.tile;
    const Sides sides(own);
    const Chain chain = chain_of(blockIdx.y, n_channels);
    const int begin = first_of_slice(blockIdx.z, gridDim.z, n_used);
    const int end = first_of_slice(blockIdx.z + 1, gridDim.z, n_used);
    Range range = {first_batch + begin, (end - begin) * BATCH_UNITS, 0};
    if constexpr (ATOMIC) {
        const Part part = own_part(range.n_units);
        range = {range.first_batch + part.first / BATCH_UNITS, part.n, part.first % BATCH_UNITS};
    }
    const int role = threadIdx.x / GROUP;
    if (role == 0) {
        give_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int channel = chain.first; channel < chain.end; ++channel)
                copy_slice(ring, map, own, sides, range, channel);
            if constexpr (BLOCKS_PER_CLUSTER > 1)
                await_partners(ring);
        }
    } else if (CONVERTS && role == 1) {
        give_registers<CONVERTER_REGISTERS>();
        for (int channel = chain.first; channel < chain.end; ++channel)
            convert_slice(ring, sides, range);
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const long long n_baselines = N_RECEIVERS * (N_RECEIVERS + 1ll) / 2;
        const int consumer = role - 1 - CONVERTS;
        const Release release(own);
        Lowest lowest;
        for (int channel = chain.first; channel < chain.end; ++channel) {
            Result* to = results + (blockIdx.z * static_cast<long long>(n_channels) + channel) * n_baselines * 8;
            // On the diagonal, the first consumer's rows need the first half of the columns only.
            if (block.first_j + consumer * 32 >= N_RECEIVERS)
                skip_slice(ring, range, release);
{% if shape.last_width %}
            else if (block.first_i + RECEIVERS_I > N_RECEIVERS  // the columns are the last receivers
                     && (LAST_WIDTH <= 32 || consumer == 1 || block.first_j < block.first_i))
                multiply_slice<LAST_WIDTH>(to, ring, block, sides, range, consumer, release, lowest);
{% endif %}
            else if (block.first_j == block.first_i && consumer == 0)
                multiply_slice<32>(to, ring, block, sides, range, consumer, release, lowest);
            else
                multiply_slice<64>(to, ring, block, sides, range, consumer, release, lowest);
        }
{% if problem.count_lowest %}
        if ({{ "block.first_i == block.first_j" if shape.last_width else "block.first_i == 0" }})  // once for each receiver
            lowest.report(n_lowest);
{% endif %}
    }
}
