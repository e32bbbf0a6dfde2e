// Outputs before a row's first, so that the first of them lies at a multiple of 128 bytes; fewer, if only they are a
// whole number of bytes of samples.
__device__ __forceinline__ int lead_of(const float2* row)
{
    constexpr int BITS = DECIMATION * SAMPLE_BITS % 8;
    constexpr int WHOLE = BITS == 0 ? 1 : BITS % 4 == 0 ? 2 : BITS % 2 == 0 ? 4 : 8;  // outputs
    return static_cast<int>(reinterpret_cast<unsigned long long>(row) / 8 % 16) / WHOLE * WHOLE;
}

// A warp's window of finished outputs: [ROWS][WINDOW], and behind each row the turns of its outputs number 0 and 32 of
// every 64: e^(2 pi i (f D j + phase)).
struct Writer {
    float* const window;
    float2* const row;
    const long long n_out;
    const int lead;
    const Frequency frequency;
    const Phase phase;  // of output -lead
    float2 lane_turns[2];  // from output 0 of 32 to the lane's two, and out of the weights' scale
    long long first;  // of the task, counted from output -lead

    __device__ __forceinline__ Writer(
        unsigned char* scratch, float2* row, long long n_out, int lead, Frequency frequency, Phase phase, float scale)
        : window(reinterpret_cast<float*>(scratch) + threadIdx.x / 32 * (ROWS * WINDOW_PITCH)), row(row), n_out(n_out),
          lead(lead), frequency(frequency), phase(phase - advance(frequency, lead * DECIMATION)), first(0)
    {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            lane_turns[i] = unit_vector(advance(frequency, (threadIdx.x % 16 * 2 + i) * DECIMATION));
            lane_turns[i].x *= scale, lane_turns[i].y *= scale;
        }
    }

    __device__ __forceinline__ void begin(long long first_output) { first = first_output; }

    // The tile of step `step` + `u`: a lane has one part of one output of an octet, for two rows.
    __device__ __forceinline__ void put(const Tile (&tile)[OCTETS], int step, int u)
    {
        const int lane = threadIdx.x % 32;
        float* const to = window + lane / 4 * WINDOW_PITCH + lane % 4 + (step & (WINDOW / STEP - 1)) * (2 * STEP);
#pragma unroll
        for (int o = 0; o < OCTETS; ++o) {
            to[(u * STEP + 2 * o) * 2] = tile[o].at[0] + tile[o].at[1] * 0x1p-11f;
            to[(u * STEP + 2 * o) * 2 + 8 * WINDOW_PITCH] = tile[o].at[2] + tile[o].at[3] * 0x1p-11f;
        }
    }

    // Outputs [at, at + WINDOW) of each run.
    __device__ __forceinline__ void drain(int at)
    {
        const int lane = threadIdx.x % 32;
        if (WINDOW == 64 || at % 64 == 0) {
            const long long output = first + lane % ROWS * RUN + at + lane / ROWS * 32;
            float* const turns = window + lane % ROWS * WINDOW_PITCH + 2 * WINDOW + lane / ROWS * 2;
            *reinterpret_cast<float2*>(turns) = unit_vector(phase + advance(frequency, output * DECIMATION));
        }
        __syncwarp();  // the window and its turns are complete
        // A half of the warp takes a row, a lane two outputs of it.
        const int lane_row = lane / 16, lane_output = lane % 16 * 2;
#pragma unroll
        for (int half = 0; half < WINDOW / 32; ++half) {
            const float* const from = window + lane_row * WINDOW_PITCH + half * 64 + 2 * lane_output;
            const float* const turns =
                window + lane_row * WINDOW_PITCH + 2 * WINDOW + (WINDOW == 64 ? half : at / 32 % 2) * 2;
            const long long j = first - lead + at + half * 32;  // of the first row, for lane 0
            float2* const to = row + j + lane_row * RUN + lane_output;
            if (j >= 0 && j + (ROWS - 1) * RUN + 32 <= n_out && reinterpret_cast<unsigned long long>(to) % 16 == 0) {
#pragma unroll
                for (int r = 0; r < ROWS; r += 2) {
                    const Floats<4> pair = turned(from + r * WINDOW_PITCH, turns + r * WINDOW_PITCH);
                    store_floats<4>(&to[r * RUN].x, pair);
                }
            } else {
#pragma unroll 1
                for (int r = 0; r < ROWS; r += 2) {
                    const Floats<4> pair = turned(from + r * WINDOW_PITCH, turns + r * WINDOW_PITCH);
                    const long long output = j + (lane_row + r) * RUN + lane_output;
                    if (output >= 0 && output < n_out)
                        to[r * RUN] = make_float2(pair.at[0], pair.at[1]);
                    if (output + 1 >= 0 && output + 1 < n_out)
                        to[r * RUN + 1] = make_float2(pair.at[2], pair.at[3]);
                }
            }
        }
        __syncwarp();  // nobody reads the window any more
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
