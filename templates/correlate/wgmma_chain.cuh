// What a block works on: a chain of channels, and in each the batches of its slice.
// Needs     nothing
// Provides  Chain, chain_of; Range

// Consecutive channels of a block. Tapered, half of the channels are in chains of CHANNELS_PER_CHAIN, half of the
// others in chains of half of that, and so on, and the rest one by one: blocks start in this order, so that the last
// ones end together.
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

// Units of a slice.
struct Range {
    int first_batch, n_units;
    int first_unit;  // of the first batch: where this part of the slice begins
};
