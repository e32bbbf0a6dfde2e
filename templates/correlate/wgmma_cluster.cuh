// Clusters: their blocks take tiles of the same channels and times, such that some of them share receivers.
// Needs     triangle.cuh (Block, block_of), lib/cluster.cuh (RUN_TOGETHER, arrive_at), lib/tma.cuh (arrive)
// Provides  NOBODY; Member, member_of; Share, share_of; Sides; Release
// Partners  two blocks of a cluster whose tiles have the same later receivers (same_j), or the same earlier ones
//           (same_i); a block may have one of each: four blocks then have a square of tiles
// Two blocks that need the same side each copy half of its units and multicast it to both: the one of the lower rank
// the first half. A block without partners copies whole sides, as without clusters. A block without a tile ends at
// once.
constexpr int NOBODY = -1;

struct Member {
    Block tile;
    int rank;
    int same_j, same_i;  // ranks of partners

    __device__ __forceinline__ bool has_tile() const { return BLOCKS_PER_CLUSTER == 1 || tile.first_j >= 0; }
};

{% if shape.blocks_per_cluster > 1 %}
// The row and the column of the tile of each block along x, and its partners' ranks.
__constant__ const signed char MEMBERS[][4] = {
{% for members in clusters %}
    {{ members }},
{% endfor %}
};

__device__ __forceinline__ Member member_of(int index)
{
    const signed char(&own)[4] = MEMBERS[index];
    const Block tile = {own[0] * RECEIVERS_J, own[1] * RECEIVERS_I};
    if constexpr (RUN_TOGETHER)
        return {tile, index % BLOCKS_PER_CLUSTER, own[2], own[3]};
    else
        return {tile, index % BLOCKS_PER_CLUSTER, NOBODY, NOBODY};
}
{% elif shape.last_width %}
// The last receivers are columns, also beside earlier ones: these tiles are above the diagonal.
__device__ __forceinline__ Member member_of(int index)
{
    const Block tile = block_of(index, N_RECEIVERS);
    if (tile.first_j + RECEIVERS_J > N_RECEIVERS)
        return {{ "{{tile.first_i, tile.first_j}, 0, NOBODY, NOBODY}" }};
    return {tile, 0, NOBODY, NOBODY};
}
{% else %}
__device__ __forceinline__ Member member_of(int index)
{
    return {block_of(index, N_RECEIVERS), 0, NOBODY, NOBODY};
}
{% endif %}

// What a block copies of a side of a stage.
struct Share {
    unsigned blocks;  // for whom: a bit for each rank, or 0: the whole side for itself
    int first;  // unit of the half that it copies for them
};

__device__ __forceinline__ Share share_of(int rank, int partner)
{
    if (partner == NOBODY)
        return {0, 0};
    return {1u << rank | 1u << partner, rank < partner ? 0 : UNITS_PER_STAGE / 2};
}

// Where the sides of a stage lie. On the diagonal they are the same receivers, and one copy serves both, unless it is
// converted where it lies, or partners have halves of both.
struct Sides {
    bool has_j, has_i;  // whether later, and earlier, receivers are copied
    int later, earlier;  // places of their units

    __device__ __forceinline__ explicit Sides(const Member& own)
    {
        const bool is_single = !IN_PLACE && own.tile.first_j == own.tile.first_i;
        has_j = !is_single || own.same_j != NOBODY;
        has_i = !is_single || own.same_i != NOBODY || own.same_j == NOBODY;
        later = has_j ? 0 : SIDE, earlier = has_i ? SIDE : 0;
    }
};

// A warp of a consumer tells all who copy to its block that it has read a stage: each of three lanes tells one block.
struct Release {
    int rank;  // of that block

    __device__ __forceinline__ explicit Release(const Member& own)
    {
        const int lane = threadIdx.x % 32;
        rank = lane == 0 ? own.rank : NOBODY;
        if constexpr (BLOCKS_PER_CLUSTER > 1) {
            if (lane == 1)
                rank = own.same_j;
            if (lane == 2)
                rank = own.same_i;
        }
    }

    __device__ __forceinline__ void operator()(unsigned barrier) const
    {
        if (rank == NOBODY)
            return;
        if constexpr (BLOCKS_PER_CLUSTER > 1)
            arrive_at(barrier, rank);
        else
            arrive(barrier);
    }
};
