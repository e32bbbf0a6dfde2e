// Pairs of bins: X[k] and X[N - k] of real samples follow from the same two bins of the complex points, so one thread
// finishes both. A block has the N_PAIRS pairs of one group, in HALVES rows of each spectrum.
// Needs     nothing
// Provides  bins_of; Place, first_place, second_place

// Returns both bins of pair `i` of a group.
__device__ __forceinline__ int2 bins_of(int group, int i)
{
    if constexpr (COMPLEX)
        return make_int2(group + N1 * i, group + N1 * i + (N1 > 1 ? N1 / 2 : N2 / 2));
    const bool in_upper_row = N1 > 1 && group == 0 && i >= N2 / 2;
    const int a = in_upper_row ? N1 / 2 + N1 * (i - N2 / 2) : group + N1 * i;
    return make_int2(a, a == 0 ? N_POINTS / 2 : N_POINTS - a);
}

// The place of a bin: one of the HALVES rows of its spectrum, and the index in this row.
struct Place {
    int half, at;
};

__device__ __forceinline__ Place first_place(int group, int i)
{
    const bool in_upper_row = !COMPLEX && N1 > 1 && group == 0 && i >= N2 / 2;
    return {in_upper_row, in_upper_row ? i - N2 / 2 : i};
}

__device__ __forceinline__ Place second_place(int group, int i)
{
    if constexpr (COMPLEX)
        return {N1 > 1, N1 > 1 ? i : i + N2 / 2};
    if (N1 == 1)
        return {0, N2 - i};
    if (group != 0)
        return {1, N2 - 1 - i};
    return {i >= N2 / 2, i >= N2 / 2 ? N2 + N2 / 2 - 1 - i : N2 - i};
}
