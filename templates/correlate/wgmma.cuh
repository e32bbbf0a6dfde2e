// The design for Hopper: the first warpgroup of a block copies, the last two multiply; one between them may convert.
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
constexpr int IN_FLIGHT = {{ config.IN_FLIGHT }};  // products under way while the next one's rows are loaded
constexpr int CHANNELS_PER_CHAIN = {{ config.CHAIN }};  // channels of a block, one after another
constexpr bool TAPERED = {{ "true" if config.get("TAPER", 0) else "false" }};  // chains become shorter towards the last
constexpr int BLOCKS_PER_CLUSTER = {{ shape.blocks_per_cluster }};  // blocks that copy for each other

constexpr bool CONVERTS = {{ shape.converts | lower }};
constexpr int PRODUCTS_PER_STAGE = 4;
static_assert(UNITS_PER_STAGE * PRODUCTS_PER_UNIT == PRODUCTS_PER_STAGE);
constexpr int UNIT = RECEIVERS_J * UNIT_BYTES;  // of all receivers of a side
constexpr int SIDE = UNITS_PER_STAGE * UNIT;
constexpr bool IN_PLACE = CONVERTS && BITS != 4;  // converted where it lies, unless it becomes larger
constexpr int OPERAND_AT = BITS == 4 ? 2 * SIDE : SIDE;
constexpr int OPERAND = RECEIVERS_I * UNIT_BYTES;  // of one product
constexpr int PAIR_UNITS = 2 / PRODUCTS_PER_UNIT;  // units that two products need
static_assert(STAGE_BYTES == OPERAND_AT + PRODUCTS_PER_STAGE * OPERAND);
constexpr int GROUP = 128;  // threads of a warpgroup
constexpr int CONSUMERS = 2;  // warpgroups
static_assert(N_THREADS == GROUP * (1 + CONVERTS + CONSUMERS));
constexpr int BUFFERS = IN_FLIGHT == 1 ? 2 : 4;  // of a thread's part of A: a divisor of PRODUCTS_PER_STAGE
constexpr int PRODUCER_REGISTERS = 24, CONVERTER_REGISTERS = PAIR_UNITS == 2 ? 72 : 56;  // of a thread, multiples of 8
constexpr int CONSUMER_REGISTERS = CONVERTS ? (512 - PRODUCER_REGISTERS - CONVERTER_REGISTERS) / CONSUMERS : 240;
static_assert(N_STAGES * (STAGE_BYTES + 24) == SHARED_BYTES, "as the launch has it: each stage has three barriers");
static_assert(RECEIVERS_J == 64 && RECEIVERS_I == 64, "rows of two consumers, and columns for each polarisation");

// The stages in the order of their use, round and round; `parity` is that of the round.
struct Ring {
    unsigned base;  // of shared memory
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ explicit Ring(unsigned base) : base(base) {}
    __device__ __forceinline__ unsigned address() const { return base + stage * STAGE_BYTES; }
    __device__ __forceinline__ unsigned copied() const { return base + N_STAGES * STAGE_BYTES + stage * 24; }
    __device__ __forceinline__ unsigned converted() const { return copied() + 8; }
    __device__ __forceinline__ unsigned released() const { return copied() + 16; }
    __device__ __forceinline__ unsigned released_before() const  // that of the stage before
    {
        return base + N_STAGES * STAGE_BYTES + (stage == 0 ? N_STAGES - 1 : stage - 1) * 24 + 16;
    }
    __device__ __forceinline__ void advance()
    {
        if (++stage == N_STAGES)
            stage = 0, parity ^= 1;
    }
};

// Consecutive channels of a block. Tapered, half of the channels are in chains of CHANNELS_PER_CHAIN, half of the others
// in chains of half of that, and so on, and the rest one by one: blocks start in this order, so that the last ones end
// together.
struct Chain {
    int first, end;
};

__device__ __forceinline__ Chain chain_of(int index, int n_channels)
{
    int length = CHANNELS_PER_CHAIN, first = 0;
    if constexpr (TAPERED) {
        for (; length > 1; length /= 2) {
            const int n = (n_channels - first) / 2 / length;
            if (index < n)
                break;
            index -= n, first += n * length;
        }
    }
    first += index * length;
    return {first, min(first + length, n_channels)};
}

// The batches of a slice, in units.
struct Range {
    int first_batch, n_units;
};

{% include "correlate/wgmma_cluster.cuh" %}

{% include "correlate/wgmma_load.cuh" %}

{% include "correlate/wgmma_multiply.cuh" %}

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
    const Member own = member_of(blockIdx.x);
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
    const Range range = {first_batch + begin, (end - begin) * BATCH_UNITS};
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
            // Of the diagonal, the first consumer's rows need the first half of the columns only
            if (block.first_j + consumer * 32 >= N_RECEIVERS)
                skip_slice(ring, range, release);
            else if (block.first_j == block.first_i && consumer == 0)
                multiply_slice<32>(to, ring, block, sides, range, consumer, release, lowest);
            else
                multiply_slice<64>(to, ring, block, sides, range, consumer, release, lowest);
        }
{% if problem.count_lowest %}
        if (block.first_i == 0)  // a block for each later receiver
            lowest.report(n_lowest);
{% endif %}
    }
}
