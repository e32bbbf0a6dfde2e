// Parts of a slice, which blocks share if slices are split: how many there are, the grid says.
// Needs     nothing
// Provides  tile_number; Part, own_part

// Returns the number of the block's tile. The blocks of a part of a slice come one after another.
__device__ __forceinline__ int tile_number()
{
    return ATOMIC ? blockIdx.x % N_BLOCKS : blockIdx.x;
}

// Units of a slice.
struct Part {
    int first, n;
};

// Returns the units that the block adds up of n_units of a slice that is split: whole stages, unless they are the last
// ones. There may be none.
__device__ __forceinline__ Part own_part(int n_units)
{
    const int part = blockIdx.x / N_BLOCKS, n_parts = gridDim.x / N_BLOCKS;
    const long long n_stages = (n_units + UNITS_PER_STAGE - 1) / UNITS_PER_STAGE;
    const int first = static_cast<int>(n_stages * part / n_parts) * UNITS_PER_STAGE;
    const int end = static_cast<int>(n_stages * (part + 1) / n_parts) * UNITS_PER_STAGE;
    return {first, min(end, n_units) - first};
}
