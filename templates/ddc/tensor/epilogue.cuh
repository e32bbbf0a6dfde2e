// Epilogue: it takes finished outputs from a warp's window in shared memory, rotates them by the mixer's phasors and
// stores them.
// Needs     Shape; lib/phase.cuh (Frequency, Phase, advance, multiply, unit_vector),
//           lib/vector.cuh (Floats, load_floats, store_floats)
// Provides  Epilogue: lead_of, Pair; `window`, which the mainloop fills, and drain
// Leads     Runs start `lead` outputs before output 0 of a polarisation, so that stores start at multiples of 128
//           bytes.
// Phasors   Output j is rotated by e^(2 pi i (f D j + phase)). A window is [ROWS_PER_WARP][OUTPUTS_PER_WINDOW], and
//           behind each row there is room for the phasors of two of its outputs, OUTPUTS_PER_PHASOR apart. The first of
//           every OUTPUTS_PER_PHASOR outputs has such a phasor. Lanes have the phasors from it to their outputs (Pair).
template <class Shape>
struct Epilogue {
    static constexpr int OUTPUTS_PER_PHASOR = Shape::OUTPUTS_PER_WINDOW < 32 ? Shape::OUTPUTS_PER_WINDOW : 32;
    static constexpr int LANES_PER_ROW = OUTPUTS_PER_PHASOR / 2;  // lanes that store outputs of one row, two each
    static constexpr int ROWS_PER_STORE = 32 / LANES_PER_ROW;
    static constexpr int BITS_PER_OUTPUT = DECIMATION * SAMPLE_BITS;
    // The fewest outputs whose samples are always a whole number of bytes.
    static constexpr int LEAD_UNIT =
        BITS_PER_OUTPUT % 8 == 0 ? 1 : BITS_PER_OUTPUT % 4 == 0 ? 2 : BITS_PER_OUTPUT % 2 == 0 ? 4 : 8;
    // Unroll factor of the stores of single outputs. With LEAD_UNIT 1 all outputs are paired, and only the ends of a
    // row need these stores.
    static constexpr int UNPAIRED_STORES = LEAD_UNIT == 1 ? 1 : Shape::ROWS_PER_WARP / ROWS_PER_STORE;
    static_assert(Shape::OUTPUTS_PER_RUN % 2 == 0, "pairs of outputs; a last window may be cut");

    // Returns by how many outputs runs start before a row's first output, so that their first output lies at a multiple
    // of 128 bytes. The lead is rounded down to LEAD_UNIT, so that its samples are whole bytes.
    __device__ __forceinline__ static int lead_of(const float2* row)
    {
        return static_cast<int>(reinterpret_cast<unsigned long long>(row) / 8 % 16) / LEAD_UNIT * LEAD_UNIT;
    }

    // The two outputs that a lane stores of each OUTPUTS_PER_PHASOR. They are neighbours if pairs of outputs lie at
    // multiples of 16 bytes. Rows of any length and leads of LEAD_UNIT outputs may prevent that. Then the two are
    // LANES_PER_ROW apart, so that neighbouring lanes still store to neighbouring places.
    struct Pair {
        const bool is_paired;
        const int apart;
        const int first;
        float2 phasors[2];  // from the first of OUTPUTS_PER_PHASOR outputs to these, times the scale of sums

        __device__ __forceinline__ Pair(int lane, const float2* row, int lead)
            : is_paired(LEAD_UNIT == 1 || reinterpret_cast<unsigned long long>(row - lead) % 16 == 0),
              apart(is_paired ? 1 : LANES_PER_ROW), first(lane % LANES_PER_ROW * (is_paired ? 2 : 1))
        {
        }

        __device__ __forceinline__ void make_phasors(Frequency frequency)
        {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                phasors[i] = unit_vector(advance(frequency, (first + i * apart) * DECIMATION));
        }

        __device__ __forceinline__ void scale_phasors(float scale)
        {
#pragma unroll
            for (int i = 0; i < 2; ++i)
                phasors[i].x *= scale, phasors[i].y *= scale;
        }
    };

    const int lane;
    float* const window;
    const Frequency frequency;
    const Phase phase;  // phase of output -lead
    const long long first;  // first output of the warp's runs; outputs in the lead are below 0
    const int lead;
    const int n_rows;  // rows whose outputs are stored: ROWS_PER_WARP, or one less
    const int begin, end;  // outputs [begin, end) of these rows, counted from `first`, are in the baseband
    const bool is_whole;  // whether these are all outputs of the rows
    const Pair pair;
    float2* const to;  // place in the baseband of the first output of the lane's first pair

    // `first` is the first output of the warp's first run, counted from output -lead.
    __device__ __forceinline__ Epilogue(
        int lane, float* window, float2* row, long long n_out, int lead, Frequency frequency, Phase phase,
        const Pair& pair, long long first, int n_rows)
        : lane(lane), window(window), frequency(frequency), phase(phase - advance(frequency, lead * DECIMATION)),
          first(first - lead), lead(lead), n_rows(n_rows), begin(first < lead ? static_cast<int>(lead - first) : 0),
          end(static_cast<int>(
              max(0ll, min(n_out + lead - first, static_cast<long long>(n_rows * Shape::OUTPUTS_PER_RUN))))),
          is_whole(begin == 0 && end == n_rows * Shape::OUTPUTS_PER_RUN), pair(pair),
          to(row + (first - lead) + lane / LANES_PER_ROW * Shape::OUTPUTS_PER_RUN + pair.first)
    {
    }

    // Stores outputs [at, at + OUTPUTS_PER_WINDOW) of each run, as far as the run has them.
    __device__ __forceinline__ void drain(int at)
    {
        if (at % (2 * OUTPUTS_PER_PHASOR) == 0) {
            const int row = lane % Shape::ROWS_PER_WARP, second = lane / Shape::ROWS_PER_WARP;
            const long long output = first + lead + row * Shape::OUTPUTS_PER_RUN + at + second * OUTPUTS_PER_PHASOR;
            float* const phasors = window + row * Shape::WINDOW_PITCH + 2 * Shape::OUTPUTS_PER_WINDOW + second * 2;
            *reinterpret_cast<float2*>(phasors) = unit_vector(phase + advance(frequency, output * DECIMATION));
        }
        __syncwarp();  // the window and its phasors are complete
        const float* const outputs = window + lane / LANES_PER_ROW * Shape::WINDOW_PITCH;
#pragma unroll
        for (int part = 0; part < Shape::OUTPUTS_PER_WINDOW / OUTPUTS_PER_PHASOR; ++part) {
            const int phasor = 2 * (at / OUTPUTS_PER_PHASOR + part) % 4;
            const float* const phasors = outputs + 2 * Shape::OUTPUTS_PER_WINDOW + phasor;
            const float* const from = outputs + part * (2 * OUTPUTS_PER_PHASOR) + pair.first * 2;
            const int offset = at + part * OUTPUTS_PER_PHASOR;
            if (Shape::OUTPUTS_PER_RUN % Shape::OUTPUTS_PER_WINDOW != 0
                && offset + pair.first >= Shape::OUTPUTS_PER_RUN)
                continue;  // the run ends in this window, and the places behind its end were never written
            if (pair.is_paired && (is_whole || is_inside(offset))) {
#pragma unroll
                for (int r = 0; r < Shape::ROWS_PER_WARP; r += ROWS_PER_STORE)
                    if (r + ROWS_PER_STORE < Shape::ROWS_PER_WARP || r + lane / LANES_PER_ROW < n_rows) {
                        const Floats<4> y = load_floats<4>(from + r * Shape::WINDOW_PITCH);
                        const float2 a = rotated<0>(make_float2(y.at[0], y.at[1]), phasors + r * Shape::WINDOW_PITCH);
                        const float2 b = rotated<1>(make_float2(y.at[2], y.at[3]), phasors + r * Shape::WINDOW_PITCH);
                        store_floats<4>(&to[offset + r * Shape::OUTPUTS_PER_RUN].x, {a.x, a.y, b.x, b.y});
                    }
            } else {
                const int output = offset + lane / LANES_PER_ROW * Shape::OUTPUTS_PER_RUN + pair.first - begin;
                const bool has_second = Shape::OUTPUTS_PER_RUN % OUTPUTS_PER_PHASOR == 0
                    || offset + pair.first + pair.apart < Shape::OUTPUTS_PER_RUN;
#pragma unroll UNPAIRED_STORES
                for (int r = 0; r < Shape::ROWS_PER_WARP; r += ROWS_PER_STORE) {
                    const float2* const two = reinterpret_cast<const float2*>(from + r * Shape::WINDOW_PITCH);
                    const float2 a = rotated<0>(two[0], phasors + r * Shape::WINDOW_PITCH);
                    const float2 b = rotated<1>(two[pair.apart], phasors + r * Shape::WINDOW_PITCH);
                    if (is_stored(output + r * Shape::OUTPUTS_PER_RUN))
                        to[offset + r * Shape::OUTPUTS_PER_RUN] = a;
                    if (has_second && is_stored(output + r * Shape::OUTPUTS_PER_RUN + pair.apart))
                        to[offset + r * Shape::OUTPUTS_PER_RUN + pair.apart] = b;
                }
            }
        }
        __syncwarp();  // nobody reads the window any more
    }

private:
    // Returns whether outputs [offset, offset + OUTPUTS_PER_PHASOR) of all runs, as far as the runs have them, are in
    // the baseband.
    __device__ __forceinline__ bool is_inside(int offset) const
    {
        return offset >= begin
            && (n_rows - 1) * Shape::OUTPUTS_PER_RUN + min(offset + OUTPUTS_PER_PHASOR, Shape::OUTPUTS_PER_RUN) <= end;
    }

    // Returns whether `output`, counted from the first output in the baseband, is in the baseband.
    __device__ __forceinline__ bool is_stored(int output) const
    {
        return static_cast<unsigned>(output) < static_cast<unsigned>(end - begin);
    }

    // Returns the lane's output I of each OUTPUTS_PER_PHASOR, rotated.
    template <int I>
    __device__ __forceinline__ float2 rotated(float2 y, const float* phasor) const
    {
        return multiply(y, multiply(*reinterpret_cast<const float2*>(phasor), pair.phasors[I]));
    }
};
