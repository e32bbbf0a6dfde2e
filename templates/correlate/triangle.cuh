// The triangle of baselines, i <= j, and slices of time. Blocks take tiles of the triangle: row by row of later
// receivers, each row up to the diagonal.
// Needs     nothing
// Provides  Block, block_of; first_of_slice
struct Block {
    int first_j, first_i;  // receivers
};

__host__ __device__ constexpr int blocks_of_row(int row, int n_receivers)
{
    const int end = (row + 1) * RECEIVERS_J < n_receivers ? (row + 1) * RECEIVERS_J : n_receivers;
    return (end + RECEIVERS_I - 1) / RECEIVERS_I;
}

// Returns the tile of block `index`. It walks the rows: exact for any sizes of tiles, and at most 32 steps for 1024
// receivers.
__device__ __forceinline__ Block block_of(int index, int n_receivers)
{
    int row = 0;
#pragma unroll 1
    while (index >= blocks_of_row(row, n_receivers))
        index -= blocks_of_row(row++, n_receivers);
    return {row * RECEIVERS_J, index * RECEIVERS_I};
}

// Returns the first batch of slice z, of n_slices that share n_batches.
__device__ __forceinline__ int first_of_slice(int z, int n_slices, int n_batches)
{
    return static_cast<int>(static_cast<long long>(n_batches) * z / n_slices);
}
