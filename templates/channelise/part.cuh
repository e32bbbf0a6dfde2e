// Parts: each heap's spectra are cut into parts of PART_SPECTRA, which blocks divide among them.
// Needs     nothing
// Provides  Part; part_at

// A range of spectra of one heap: one part, or the piece of it that a block handles. Spectra [from, to) are computed.
struct Part {
    long long heap;
    int in_heap;  // number of the first spectrum in the heap
    int from, to;  // counted from in_heap

    __device__ __forceinline__ bool has_any() const { return from < to; }
    __device__ __forceinline__ bool has(int s) const { return from <= s && s < to; }
    __device__ __forceinline__ bool is_whole(int s, int n) const { return from <= s && s + n <= to; }
    __device__ __forceinline__ long long first() const { return heap * SPECTRA_PER_HEAP + in_heap; }
};

__device__ __forceinline__ int clamped(long long value, int most)
{
    return value < 0 ? 0 : value > most ? most : static_cast<int>(value);
}

// Returns spectra [skipped, skipped + n) of part number `index`, counted from the part that has first_spectrum.
__device__ __forceinline__ Part part_at(
    long long index, int skipped, int n, long long first_spectrum, long long n_spectra)
{
    const long long number = first_spectrum / SPECTRA_PER_HEAP * PARTS_PER_HEAP +
                             first_spectrum % SPECTRA_PER_HEAP / PART_SPECTRA + index;
    Part part;
    part.heap = number / PARTS_PER_HEAP;
    part.in_heap = static_cast<int>(number % PARTS_PER_HEAP) * PART_SPECTRA + skipped;
    const long long first = part.first();
    const int there = clamped(SPECTRA_PER_HEAP - part.in_heap, n);
    part.from = clamped(first_spectrum - first, there);
    part.to = clamped(first_spectrum + n_spectra - first, there);
    return part;
}
