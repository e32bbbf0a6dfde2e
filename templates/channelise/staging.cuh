{% if config.STAGING == "rows" %}
// Packed samples on their way to shared memory. A staged row is what ROW_COLUMNS neighbouring columns have of one row of
// samples, in ROW_CHUNKS times 16 bytes, which begin at a multiple of 16 in memory too. Of a piece, FIR_ROWS rows of each
// of PIECE_SEGMENTS groups of columns, of each of PIECE_RUNS runs of spectra, lie in one of STAGES places.
constexpr int ROW_BYTES = ROW_WORDS * 4, SEGMENT_BYTES = N2 * POINT_BITS / 8;
static_assert(ROW_BYTES % 16 == 0 && N2 * POINT_BITS % 128 == 0, "all rows of a run begin at the same bit of 16 bytes");

struct Rows {
    alignas(16) unsigned char at[PIECE_RUNS][FIR_ROWS][PIECE_SEGMENTS][16 * ROW_CHUNKS];
};
{% else %}
// Packed samples of a part of a polarisation in shared memory, from a multiple of 16 bytes in memory on.
struct Rows {
    alignas(16) unsigned char at[FIR_ROWS * ROW_WORDS * 4 + 16];
};
{% endif %}
static_assert(sizeof(Rows) == {{ shape.piece_bytes }}, "what the definition counts");

// Points of a column of a piece.
class StagedColumn {
public:
    // first_bit: of the first of the ROW_COLUMNS columns in memory; c: the thread's column, number of all of the block
    __device__ __forceinline__ StagedColumn(const Rows& rows, long long first_bit, int c)
    {
        const unsigned first = static_cast<unsigned>(first_bit) % 128 + c % ROW_COLUMNS * POINT_BITS;
{% if config.STAGING == "rows" %}
        const int run = own_thread() / FIR_WIDTH, segment = own_thread() % FIR_WIDTH / ROW_COLUMNS;  // of the piece
        words = reinterpret_cast<const unsigned*>(rows.at[run][0][segment]) + first / 32;
{% else %}
        words = reinterpret_cast<const unsigned*>(rows.at) + first / 32;
{% endif %}
        bit = first % 32;
    }

    __device__ __forceinline__ float2 at(int row) const
    {
        const unsigned* from = words + row * {{ "(4 * ROW_CHUNKS * PIECE_SEGMENTS)" if config.STAGING == "rows" else "ROW_WORDS" }};
        if constexpr (COMPLEX)
            return *reinterpret_cast<const float2*>(from);
        else
            return unpacked(from[0], from[1], bit);
    }

private:
    const unsigned* words;
    unsigned bit;
};
