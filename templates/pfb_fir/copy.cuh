// Copies the rows of a part, a stage at a time. Item i of a stage is copy i % PIECE of row i / PIECE. A thread copies
// items threadIdx.x, threadIdx.x + WGS, ...
struct Copier {
    static constexpr int ITEMS = STAGE_ROWS * PIECE;
    static constexpr int OWN_ITEMS = ceil_div(ITEMS, WGS);
    static constexpr bool EVEN = ROW_BITS % 128 == 0;  // all pieces start at the same bit, and items lie in even steps
    static constexpr long long ROW_BYTES = ROW_BITS / 8;

    const unsigned char* samples;
    long long n_bytes;  // size of all samples
    long long first_bit;  // first bit in the buffer of the part's first row
    int n_rows;
    int stage;  // number of the next stage
    bool inside;  // whether every row of every stage is in the buffer
    const unsigned char* next[OWN_ITEMS];  // addresses of the thread's items of the next stage, if EVEN

    // The part has `n` spectra. Its first turn has one row less than the others: place 0 is that of row -1, which
    // nobody reads.
    __device__ __forceinline__ Copier(const unsigned char* samples, long long n_bytes, long long first_bit, int n)
        : samples(samples), n_bytes(n_bytes), first_bit(first_bit), n_rows(n + TAPS - 1), stage(0)
    {
        const long long end = first_bit + (PART_STAGES * STAGE_ROWS - 2) * ROW_BITS + PIECE * 128;
        inside = n == PART && first_bit >= ROW_BITS && end <= 8 * n_bytes;
        if constexpr (EVEN) {
#pragma unroll
            for (int i = 0; i < OWN_ITEMS; ++i) {
                const int item = i * WGS + threadIdx.x;
                next[i] = samples + ((first_bit >> 7 << 4) + (item / PIECE - 1) * ROW_BYTES + item % PIECE * 16);
            }
        }
    }

    // Starts the copies of the next stage. It closes a group even if there is none, so that the number of groups under
    // way stays the same.
    __device__ __forceinline__ void next_stage(uint4 (*rows)[PIECE])
    {
        if (stage < PART_STAGES) {
            if (EVEN && inside) {
#pragma unroll
                for (int i = 0; i < OWN_ITEMS; ++i) {
                    const int item = i * WGS + threadIdx.x;
                    if ((i + 1) * WGS <= ITEMS || item < ITEMS)
                        copy_async(&rows[0][0] + item, next[i]);
                    next[i] += STAGE_ROWS * ROW_BYTES;
                }
            } else {
#pragma unroll 1
                for (int item = threadIdx.x; item < ITEMS; item += WGS)
                    copy_guarded(rows, item);
            }
            ++stage;
        }
        close_group();
    }

    // Copies an item. Bytes outside of the buffer become 0, and rows that no spectrum needs are left out.
    __device__ __forceinline__ void copy_guarded(uint4 (*rows)[PIECE], int item)
    {
        const int row = stage * STAGE_ROWS - 1 + item / PIECE;
        if (row >= 0 && row < n_rows) {
            const long long address = ((first_bit + row * ROW_BITS) >> 7 << 4) + item % PIECE * 16;
            const long long n_left = address < 0 ? 0 : n_bytes - address;
            const int n = n_left >= 16 ? 16 : n_left > 0 ? static_cast<int>(n_left) : 0;
            copy_async(&rows[item / PIECE][item % PIECE], samples + (n > 0 ? address : 0), n);
        }
    }
};
