// Where mixed weights lie: 8 bytes each, and behind them what warps found to be the largest of their share. Lanes take
// those of outputs next to each other, DECIMATION apart, and of groups of samples: room after each 16 keeps most of them
// from meeting in a bank.
__host__ __device__ constexpr unsigned place_of_weight(unsigned k)
{
    return k + k / 16;
}

__device__ __forceinline__ bool is_weight(int k)
{
    return static_cast<unsigned>(k) < TAPS;  // 0 or more, too
}

constexpr int PLACES = place_of_weight(TAPS - 1) + 1;
constexpr int MIXED_BYTES = ceil_div(8 * PLACES + 4 * WARPS, 16) * 16;
