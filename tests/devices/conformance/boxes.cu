// templates/lib/tma.cuh stands before this text. A thread has boxes copied into a ring of stages, and warps add them:
// out[row][word] = the sum of all boxes' words there.
// A box is ROWS rows of WORDS words, swizzled within 64 bytes, of an array [n_rows][n_words] that it may reach out of.
constexpr int STAGES = 3, ROWS = 32, WORDS = 16, CONSUMERS = 2;
constexpr int STAGE = ROWS * WORDS * 4;

extern "C" __global__ void boxes(
    unsigned* out, const unsigned* in, int n_boxes, int first_row, const __grid_constant__ TensorMap map)
{
    extern __shared__ unsigned char dynamic_shared[];
    const unsigned base = shared_address(dynamic_shared);
    const unsigned copied = base + STAGES * STAGE, released = copied + STAGES * 8;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(copied + i * 8, 1);
            init_barrier(released + i * 8, CONSUMERS);
        }
        publish_barriers();
    }
    __syncthreads();  // the barriers are ready
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == 0) {
        for (int i = 0; i < n_boxes && lane == 0; ++i) {
            const int stage = i % STAGES;
            wait(released + stage * 8, i / STAGES % 2 ^ 1);
            arrive_and_expect(copied + stage * 8, STAGE);
            copy_box(base + stage * STAGE, &map, copied + stage * 8, i * WORDS, first_row);
        }
        return;
    }
    unsigned sums[WORDS] = {};  // of the lane's row
    for (int i = 0; i < n_boxes; ++i) {
        const int stage = i % STAGES;
        wait(copied + stage * 8, i / STAGES % 2);
        for (int word = 0; word < WORDS; ++word) {
            const int at = (lane * WORDS + word) * 4;
            sums[word] += *reinterpret_cast<unsigned*>(dynamic_shared + stage * STAGE + (at ^ at >> 3 & 0x30));
        }
        __syncwarp();  // all lanes have read
        if (lane == 0)
            arrive(released + stage * 8);
    }
    if (warp == 1)
        for (int word = 0; word < WORDS; ++word)
            out[lane * WORDS + word] = sums[word];
}
