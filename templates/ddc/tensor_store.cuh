// Outputs whose samples are whole bytes, wherever they start.
constexpr int WHOLE =
    DECIMATION * SAMPLE_BITS % 8 == 0 ? 1 : DECIMATION * SAMPLE_BITS % 4 == 0 ? 2 : DECIMATION * SAMPLE_BITS % 2 == 0 ? 4 : 8;

// Outputs before a row's first, so that the first of them lies at a multiple of 128 bytes; fewer, if only they are a
// whole number of bytes of samples.
__device__ __forceinline__ int lead_of(const float2* row)
{
    return static_cast<int>(reinterpret_cast<unsigned long long>(row) / 8 % 16) / WHOLE * WHOLE;
}

// A warp's window of finished outputs: [ROWS][WINDOW], and behind each row the turns of two of its outputs, TURN apart:
// e^(2 pi i (f D j + phase)). Of every TURN outputs the first has such a turn, and the others are so far from it as the
// lanes that take them say.
constexpr int TURN = WINDOW < 32 ? WINDOW : 32;
constexpr int LANES_A_ROW = TURN / 2;  // that store outputs of one row, two each
constexpr int ROWS_A_STORE = 32 / LANES_A_ROW;
// Of stores one by one, whose code is written out: where all are pairs, such stores are for both ends of a row alone.
constexpr int UNPAIRED_STORES = WHOLE == 1 ? 1 : ROWS / ROWS_A_STORE;
static_assert(WINDOW % STEP == 0 && RUN % STEP == 0 && RUN % 2 == 0, "whole steps, and pairs; a last window may be cut");

// A lane's two outputs of TURN. Pairs of outputs lie at multiples of 16 bytes. If not, since rows may have any length, and
// leads are of WHOLE outputs, the two are half of them apart, so that lanes still store next to each other.
struct LanePair {
    const bool is_paired;
    const int apart;
    const int first;
    float2 turns[2];  // from the first of TURN outputs to the lane's two, and out of the weights' scale

    __device__ __forceinline__ LanePair(int lane, const float2* row, int lead)
        : is_paired(WHOLE == 1 || reinterpret_cast<unsigned long long>(row - lead) % 16 == 0),
          apart(is_paired ? 1 : LANES_A_ROW), first(lane % LANES_A_ROW * (is_paired ? 2 : 1))
    {
    }

    __device__ __forceinline__ void make_turns(Frequency frequency)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            turns[i] = unit_vector(advance(frequency, (first + i * apart) * DECIMATION));
    }

    __device__ __forceinline__ void scale_turns(float scale)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            turns[i].x *= scale, turns[i].y *= scale;
    }
};

struct Writer {
    const int lane;
    float* const window;
    const Frequency frequency;
    const Phase phase;  // of output -lead
    const long long first;  // output of the warp's runs; those before the lead are below 0
    const int lead;
    const int n_rows;  // that are stored: ROWS, or one less
    const int begin, end;  // of what is in the baseband of these rows, from the first output on
    const bool is_whole;  // that is all
    const LanePair pair;
    float2* const to;  // where the first of the pair goes, of the first TURN

    __device__ __forceinline__ Writer(
        int lane, float* window, float2* row, long long n_out, int lead, Frequency frequency, Phase phase,
        const LanePair& pair, long long first, int n_rows)
        : lane(lane), window(window), frequency(frequency), phase(phase - advance(frequency, lead * DECIMATION)),
          first(first - lead), lead(lead), n_rows(n_rows), begin(first < lead ? static_cast<int>(lead - first) : 0),
          end(static_cast<int>(max(0ll, min(n_out + lead - first, static_cast<long long>(n_rows * RUN))))),
          is_whole(begin == 0 && end == n_rows * RUN), pair(pair),
          to(row + (first - lead) + lane / LANES_A_ROW * RUN + pair.first)
    {
    }

    // Outputs [at, at + WINDOW) of each run, or those of them that it has.
    __device__ __forceinline__ void drain(int at)
    {
        if (at % (2 * TURN) == 0) {
            const long long output = first + lead + lane % ROWS * RUN + at + lane / ROWS * TURN;
            float* const turns = window + lane % ROWS * WINDOW_PITCH + 2 * WINDOW + lane / ROWS * 2;
            *reinterpret_cast<float2*>(turns) = unit_vector(phase + advance(frequency, output * DECIMATION));
        }
        __syncwarp();  // the window and its turns are complete
        const float* const outputs = window + lane / LANES_A_ROW * WINDOW_PITCH;
#pragma unroll
        for (int part = 0; part < WINDOW / TURN; ++part) {
            const int turn = 2 * (at / TURN + part) % 4;
            const float* const turns = outputs + 2 * WINDOW + turn;
            const float* const from = outputs + part * (2 * TURN) + pair.first * 2;
            const int offset = at + part * TURN;
            if (RUN % WINDOW != 0 && offset + pair.first >= RUN)
                continue;  // the run ends in this window; what is behind it was never put
            if (pair.is_paired && (is_whole || is_inside(offset))) {
#pragma unroll
                for (int r = 0; r < ROWS; r += ROWS_A_STORE)
                    if (r + ROWS_A_STORE < ROWS || r + lane / LANES_A_ROW < n_rows) {
                        const Floats<4> y = load_floats<4>(from + r * WINDOW_PITCH);
                        const float2 a = turned<0>(make_float2(y.at[0], y.at[1]), turns + r * WINDOW_PITCH);
                        const float2 b = turned<1>(make_float2(y.at[2], y.at[3]), turns + r * WINDOW_PITCH);
                        store_floats<4>(&to[offset + r * RUN].x, {a.x, a.y, b.x, b.y});
                    }
            } else {
                const int output = offset + lane / LANES_A_ROW * RUN + pair.first - begin;
                const bool has_second = RUN % TURN == 0 || offset + pair.first + pair.apart < RUN;
#pragma unroll UNPAIRED_STORES
                for (int r = 0; r < ROWS; r += ROWS_A_STORE) {
                    const float2* const two = reinterpret_cast<const float2*>(from + r * WINDOW_PITCH);
                    const float2 a = turned<0>(two[0], turns + r * WINDOW_PITCH);
                    const float2 b = turned<1>(two[pair.apart], turns + r * WINDOW_PITCH);
                    if (is_stored(output + r * RUN))
                        to[offset + r * RUN] = a;
                    if (has_second && is_stored(output + r * RUN + pair.apart))
                        to[offset + r * RUN + pair.apart] = b;
                }
            }
        }
        __syncwarp();  // nobody reads the window any more
    }

    // Whether outputs [offset, offset + TURN) of all runs, or those that these have, are in the baseband.
    __device__ __forceinline__ bool is_inside(int offset) const
    {
        return offset >= begin && (n_rows - 1) * RUN + min(offset + TURN, RUN) <= end;
    }

    // An output, from the first one in the baseband on.
    __device__ __forceinline__ bool is_stored(int output) const
    {
        return static_cast<unsigned>(output) < static_cast<unsigned>(end - begin);
    }

    // The lane's first or second output of TURN.
    template <int I>
    __device__ __forceinline__ float2 turned(float2 y, const float* turn) const
    {
        return multiply(y, multiply(*reinterpret_cast<const float2*>(turn), pair.turns[I]));
    }
};
