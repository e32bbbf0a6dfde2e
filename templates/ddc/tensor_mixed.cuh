// Where mixed weights lie: 8 bytes each, a zero behind the last one, and behind that what warps found to be the largest
// of their share. Lanes take those of outputs next to each other, DECIMATION apart, and of groups of samples: the
// definition leaves room between them, so that most do not meet in a bank.
__host__ __device__ constexpr unsigned place_of_weight(unsigned k)
{
    return k + (k >> {{ room_shift }}) * {{ room }};
}

// Or of the zero: there is no such weight, below 0 neither.
__device__ __forceinline__ unsigned place_of_any(int k)
{
    return place_of_weight(min(static_cast<unsigned>(k), static_cast<unsigned>(TAPS)));
}

constexpr int PLACES = place_of_weight(TAPS) + 1;
constexpr int MIXED_BYTES = ceil_div(8 * PLACES + 4 * WARPS, 16) * 16;
