// Copies: a warp copies its times of ANTENNAS antennas to a stage of its own, one stage after another, through all
// batches of the block. What is past the antennas, the batch or the block's batches, and an antenna that is missing, is
// not read, and becomes 0. So no later code asks which antennas are present.
// Needs     lib/async.cuh (copy_async, close_group)
// Provides  Copier: look, copy
struct Copier {
    static constexpr int PIECES = WARP_TIMES * JONES_BYTES / 16;  // of a row

    const unsigned char* voltages;  // the warp's first time of the channel, of antenna 0 of batch 0
    const unsigned char* present;
    long long antenna_stride;
    int n_antennas, n_bytes;  // of a row, from the warp's first time on
    int batch, end, antenna;  // of the next stage
    unsigned own_present;  // of antenna `lane` of the next stage

    // Loads which antennas of the next stage are present, long before the warp needs it.
    __device__ __forceinline__ void look()
    {
        const int own = antenna + static_cast<int>(threadIdx.x % 32);
        const bool is_there = batch < end && threadIdx.x % 32 < ANTENNAS && own < n_antennas;
        own_present = is_there ? __ldg(present + (static_cast<long long>(batch) * n_antennas + own)) : 0;
    }

    // Begins the copies of the next stage, as one group. A stage past the last one is a group, too.
    __device__ __forceinline__ void copy(unsigned char* stage)
    {
        const unsigned mask = __ballot_sync(0xffffffffu, own_present != 0);
        const unsigned char* from = voltages + (static_cast<long long>(batch) * n_antennas + antenna) * antenna_stride;
#pragma unroll
        for (int i = 0; i < ANTENNAS * PIECES / 32; ++i) {
            const int number = i * 32 + threadIdx.x % 32, row = number / PIECES, byte = number % PIECES * 16;
            const bool is_needed = (mask >> row & 1) != 0 && byte < n_bytes;
            copy_async(stage + row * STAGE_ROW + byte, from + (row * antenna_stride + byte), is_needed ? 16 : 0);
        }
        close_group();
        antenna += ANTENNAS;
        if (antenna >= n_antennas)
            antenna = 0, ++batch;
        look();
    }
};
static_assert(ANTENNAS * Copier::PIECES % 32 == 0 && ANTENNAS <= 32, "each lane has equally many, and one antenna");
