// Copies the units of N consecutive receivers. Piece i of a unit is piece i % 4 of receiver i / 4; a thread has pieces
// threadIdx.x, + THREADS, ..., which all go to the same place of an octet of receivers.
template <int N>
struct Copier {
    static constexpr int OWN = (N * PIECES + THREADS - 1) / THREADS;

    const unsigned char* voltages;
    const unsigned char* from;  // the thread's first piece of the slice's first unit
    long long receiver_stride, batch_stride;
    int receiver;  // that the thread's first piece is of
    int n_units;  // of the slice

    __device__ __forceinline__ Copier(
        const unsigned char* voltages, int n_channels, int n_batches, int first_receiver, int first_batch, int n_units)
        : voltages(voltages), receiver(first_receiver + threadIdx.x / PIECES), n_units(n_units)
    {
        receiver_stride = BLOCKS ? BATCH_BYTES : static_cast<long long>(n_channels) * BATCH_BYTES;
        batch_stride = N_RECEIVERS * receiver_stride;
        const long long channel = blockIdx.y * (BLOCKS ? n_batches * batch_stride : BATCH_BYTES);
        from = voltages
            + (channel + first_batch * batch_stride + receiver * receiver_stride + threadIdx.x % PIECES * 16);
    }

    // What is past the slice, the batch or the last receiver becomes 0. `to`: of the side's receivers.
    __device__ __forceinline__ void copy(unsigned char* to, int unit)
    {
        const int batch = unit / BATCH_UNITS, in_batch = unit % BATCH_UNITS * UNIT_BYTES;
        const bool valid = unit < n_units
            && (BATCH_BYTES % UNIT_BYTES == 0 || in_batch + threadIdx.x % PIECES * 16 < BATCH_BYTES);
        const unsigned char* address = from + (batch * batch_stride + in_batch);
        to += place_of(threadIdx.x / PIECES, threadIdx.x % PIECES);
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            constexpr int APART = THREADS / PIECES;  // receivers from a thread's piece to its next: whole octets
            const bool is_piece = (i + 1) * THREADS <= N * PIECES || i * THREADS + threadIdx.x < N * PIECES;
            const bool is_valid = valid && receiver + i * APART < N_RECEIVERS;
            if (is_piece)
                copy_async(to + i * APART * UNIT_BYTES, is_valid ? address + i * APART * receiver_stride : voltages,
                           is_valid ? 16 : 0);
        }
    }
};
