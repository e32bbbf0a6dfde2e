// Copies of samples from global to shared memory. Nobody waits for a copy before it filters.
{% if config.STAGING == "rows" %}
// All threads copy 16 bytes at a time; beyond the end of the samples 0 is staged.
struct Copies {
    // Copies piece number `piece` of a polarisation.
    __device__ __forceinline__ void copy(
        Rows& rows, const Stream& stream, int pol, const Starts& starts, int piece) const
    {
#pragma unroll
        for (int run = 0; run < PIECE_RUNS; ++run) {
            const long long byte = stream.first_byte(pol, starts, piece, run);
            const long long left = stream.n_bytes() - byte;
            if (byte >= 0 && left >= (FIR_ROWS - 1) * ROW_BYTES + (PIECE_SEGMENTS - 1) * SEGMENT_BYTES + 16 * ROW_CHUNKS)
                copy_run<false>(rows, run, stream.samples + byte, left);
            else if (byte >= 0)
                copy_run<true>(rows, run, stream.samples + byte, left);
        }
    }

    // GUARDED: only `left` bytes are there.
    template <bool GUARDED>
    __device__ __forceinline__ void copy_run(Rows& rows, int run, const unsigned char* from, long long left) const
    {
        constexpr int AT_ONCE = FIR_THREADS / ROW_LANES, N = ceil_div(FIR_ROWS * PIECE_SEGMENTS, AT_ONCE);
        const int first = own_thread() / ROW_LANES, lane = own_thread() % ROW_LANES;
#pragma unroll(GUARDED ? 1 : N <= 16 ? N : 4)
        for (int k = 0; k < N; ++k) {  // a sum of what a thread knows and of a constant: one of both parts is 0
            const int row = first / PIECE_SEGMENTS + k * AT_ONCE / PIECE_SEGMENTS;
            const int segment = first % PIECE_SEGMENTS + k * AT_ONCE % PIECE_SEGMENTS;
            if (FIR_ROWS * PIECE_SEGMENTS % AT_ONCE != 0 && row >= FIR_ROWS)
                break;
            const int offset = row * ROW_BYTES + segment * SEGMENT_BYTES;
#pragma unroll(GUARDED ? 1 : ceil_div(ROW_CHUNKS, ROW_LANES))
            for (int i = 0; i < ceil_div(ROW_CHUNKS, ROW_LANES); ++i) {
                const int chunk = lane + i * ROW_LANES;
                if (ROW_CHUNKS % ROW_LANES != 0 && chunk >= ROW_CHUNKS)
                    break;
                unsigned char* to = rows.at[run][row][segment] + 16 * chunk;
                if constexpr (GUARDED)
                    copy_async(to, from + offset + 16 * chunk, clamped(left - offset - 16 * chunk, 16));
                else
                    copy_async(to, from + offset + 16 * chunk);
            }
        }
    }

    // Behind each piece, and behind what is none, at the end.
    __device__ __forceinline__ void close() const { close_group(); }

    // Until the oldest of STAGES - 1 pieces is there, for this thread's copies.
    __device__ __forceinline__ void wait() const { wait_for_groups<STAGES - 2>(); }
};
{% else %}
// The copy engine takes a part's samples at once; a barrier in shared memory counts its bytes.
struct Copies {
    unsigned long long* barrier;
    unsigned parity;  // of the phase that the next copy ends

    __device__ __forceinline__ void begin()
    {
        parity = 0;
        if (own_thread() == 0) {
            init_barrier(shared_address(barrier), 1);
            publish_barriers();
        }
    }

    // By one thread. start: of the part; -1 if it is not to be staged.
    __device__ __forceinline__ void copy(Rows& rows, const Stream& stream, int pol, long long start) const
    {
        const unsigned at = shared_address(barrier);
        if (start < 0)
            arrive(at);
        else {
            arrive_and_expect(at, sizeof(Rows));
            copy_bulk(rows.at, stream.samples + stream.first_bit(pol, start, 0) / 128 * 16, sizeof(Rows), at);
        }
    }

    __device__ __forceinline__ void wait()
    {
        ::wait(shared_address(barrier), parity);
        parity ^= 1;
    }
};
{% endif %}
