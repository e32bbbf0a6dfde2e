// Outputs before a row's first, so that the first of them lies at a multiple of 128 bytes; fewer, if only they are a
// whole number of bytes of samples.
__device__ __forceinline__ int lead_of(const float2* row)
{
    constexpr int BITS = DECIMATION * SAMPLE_BITS % 8;
    constexpr int WHOLE = BITS == 0 ? 1 : BITS % 4 == 0 ? 2 : BITS % 2 == 0 ? 4 : 8;  // outputs
    return static_cast<int>(reinterpret_cast<unsigned long long>(row) / 8 % 16) / WHOLE * WHOLE;
}

// A warp's window of finished outputs: [ROWS][WINDOW], and behind each row the turns of two of its outputs, TURN apart:
// e^(2 pi i (f D j + phase)). Of every TURN outputs the first has such a turn, and the others are so far from it as the
// lanes that take them say.
constexpr int TURN = WINDOW < 32 ? WINDOW : 32;
constexpr int LANES_A_ROW = TURN / 2;  // that store outputs of one row, two each
constexpr int ROWS_A_STORE = 32 / LANES_A_ROW;

struct Writer {
    const int lane;
    float* const window;
    const long long n_out;
    const Frequency frequency;
    const Phase phase;  // of output -lead
    float2 lane_turns[2];  // from the first of TURN outputs to the lane's two, and out of the weights' scale
    const long long first;  // output of the warp's runs; those before the lead are below 0
    const int lead;
    float2* const to;  // the lane's two outputs of the first TURN
    const int n_rows;  // that are stored: ROWS, or one less
    const bool is_whole;  // all outputs of the warp's runs are in the baseband, and pairs at multiples of 16 bytes

    __device__ __forceinline__ Writer(
        int lane, float* window, float2* row, long long n_out, int lead, Frequency frequency, Phase phase,
        float scale, long long first, int n_rows)
        : lane(lane), window(window), n_out(n_out), frequency(frequency),
          phase(phase - advance(frequency, lead * DECIMATION)), first(first - lead), lead(lead),
          to(row + (first - lead) + lane / LANES_A_ROW * RUN + lane % LANES_A_ROW * 2),
          n_rows(n_rows), is_whole(is_inside(0) && is_inside(RUN - TURN))
    {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            lane_turns[i] = unit_vector(advance(frequency, (lane % LANES_A_ROW * 2 + i) * DECIMATION));
            lane_turns[i].x *= scale, lane_turns[i].y *= scale;
        }
    }

    // Outputs [at, at + WINDOW) of each run.
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
            const float* const from = outputs + part * (2 * TURN) + lane % LANES_A_ROW * 4;
            const int offset = at + part * TURN;
            if (is_whole || is_inside(offset)) {
#pragma unroll
                for (int r = 0; r < ROWS; r += ROWS_A_STORE)
                    if (r + ROWS_A_STORE < ROWS || r + lane / LANES_A_ROW < n_rows)
                        store_floats<4>(
                            &to[offset + r * RUN].x, turned(from + r * WINDOW_PITCH, turns + r * WINDOW_PITCH));
            } else {
#pragma unroll 1
                for (int r = 0; r + lane / LANES_A_ROW < n_rows; r += ROWS_A_STORE) {
                    const Floats<4> pair = turned(from + r * WINDOW_PITCH, turns + r * WINDOW_PITCH);
                    const long long output =
                        first + offset + (lane / LANES_A_ROW + r) * RUN + lane % LANES_A_ROW * 2;
                    float2* const pair_to = to + offset + r * RUN;
                    if (output >= 0 && output < n_out)
                        pair_to[0] = make_float2(pair.at[0], pair.at[1]);
                    if (output + 1 >= 0 && output + 1 < n_out)
                        pair_to[1] = make_float2(pair.at[2], pair.at[3]);
                }
            }
        }
        __syncwarp();  // nobody reads the window any more
    }

    // Whether outputs [offset, offset + TURN) of all runs are in the baseband, and pairs at multiples of 16 bytes.
    __device__ __forceinline__ bool is_inside(int offset) const
    {
        const long long j = first + offset;
        return j >= 0 && j + (ROWS - 1) * RUN + TURN <= n_out && reinterpret_cast<unsigned long long>(to) % 16 == 0;
    }

    __device__ __forceinline__ Floats<4> turned(const float* outputs, const float* turn) const
    {
        const Floats<4> y = load_floats<4>(outputs);
        const float2 row_turn = *reinterpret_cast<const float2*>(turn);
        const float2 a = multiply(make_float2(y.at[0], y.at[1]), multiply(row_turn, lane_turns[0]));
        const float2 b = multiply(make_float2(y.at[2], y.at[3]), multiply(row_turn, lane_turns[1]));
        return {a.x, a.y, b.x, b.y};
    }
};
