// Where mixed weights lie: 8 bytes each, and behind them what warps found to be the largest of their share. Lanes take
// weights for outputs next to each other, DECIMATION apart, and for places of a step, 4 APART samples apart. Where rows
// of DECIMATION weights are long, padding puts these into different banks.
constexpr bool PADDED = DECIMATION >= 16;
constexpr int MIXED_PITCH =  // from row to row
    PADDED ? ceil_div(DECIMATION + (DECIMATION - 1) / 16 - APART, 16) * 16 + APART : DECIMATION;

__host__ __device__ constexpr int place_of_weight(int k)
{
    return PADDED ? k / DECIMATION * MIXED_PITCH + k % DECIMATION + k % DECIMATION / 16 : k;
}

constexpr int PLACES = place_of_weight(TAPS - 1) + 1;
constexpr int MIXED_BYTES = ceil_div(8 * PLACES + 4 * WARPS, 16) * 16;
