// Copies for mma.sync: all threads of a block copy the units of N consecutive receivers to shared memory, one unit
// after another. Piece i of a unit is piece i % 4 of receiver i / 4; a thread has pieces threadIdx.x, + N_THREADS, ...,
// which all go to the same place of an octet of receivers.
// Needs     octet.cuh (place_of), lib/async.cuh (copy_async)
// Provides  Copier: skip, copy
template <int N>
struct Copier {
    static constexpr int OWN = (N * PIECES + N_THREADS - 1) / N_THREADS;
    static constexpr int APART = N_THREADS / PIECES;  // receivers from a thread's piece to its next: whole octets

    const unsigned char* next;  // the thread's first piece of the next unit
    long long receiver_stride, batch_stride;
    int receiver;  // that this piece is of
    int n_left;  // units of the slice
    int in_batch;  // bytes of the batch before this piece

    __device__ __forceinline__ Copier(
        const unsigned char* voltages, int n_channels, int n_batches, int first_receiver, int first_batch, int n_units)
        : receiver(first_receiver + threadIdx.x / PIECES), n_left(n_units), in_batch(threadIdx.x % PIECES * 16)
    {
        receiver_stride = BLOCKS ? BATCH_BYTES : static_cast<long long>(n_channels) * BATCH_BYTES;
        batch_stride = N_RECEIVERS * receiver_stride;
        const long long channel = blockIdx.y * (BLOCKS ? n_batches * batch_stride : BATCH_BYTES);
        next = voltages + (channel + first_batch * batch_stride + receiver * receiver_stride + in_batch);
    }

    // Goes to a unit, from the first one of the slice.
    __device__ __forceinline__ void skip(int n_units)
    {
        const int some = n_units % BATCH_UNITS * UNIT_BYTES;
        next += n_units / BATCH_UNITS * batch_stride + some;
        in_batch += some;
    }

    // Begins the copies of the next unit. What is past the slice, the batch or the last receiver is not read, and
    // becomes 0. to: the unit of the side's first receiver.
    __device__ __forceinline__ void copy(unsigned char* to, bool is_needed)
    {
        const bool is_valid = n_left > 0 && (BATCH_BYTES % UNIT_BYTES == 0 || in_batch < BATCH_BYTES);
        to += place_of(threadIdx.x / PIECES, threadIdx.x % PIECES);
#pragma unroll
        for (int i = 0; i < OWN; ++i) {
            const bool is_piece = (i + 1) * N_THREADS <= N * PIECES || i * N_THREADS + threadIdx.x < N * PIECES;
            const int n_bytes = is_valid && receiver + i * APART < N_RECEIVERS ? 16 : 0;
            if (is_piece && is_needed)
                copy_async(to + i * APART * UNIT_BYTES, next + i * APART * receiver_stride, n_bytes);
        }
        --n_left;
        if constexpr (BATCH_UNITS == 1) {
            next += batch_stride;
        } else {
            constexpr int OTHERS = (BATCH_UNITS - 1) * UNIT_BYTES;
            const bool is_last = in_batch >= OTHERS;  // of its batch
            next += is_last ? batch_stride - OTHERS : UNIT_BYTES;
            in_batch += is_last ? -OTHERS : UNIT_BYTES;
        }
    }
};
