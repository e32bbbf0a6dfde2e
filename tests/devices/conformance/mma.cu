// templates/lib/mma.cuh stands before this text. A block is one warp, and multiplies one pair of matrices.
template <class Sum, int N_A, int N_B>
__device__ void multiply(Sum* sums, const unsigned* a, const unsigned* b)
{
    constexpr int WORDS = 4 * N_B;  // of a row of a, and of a column of b
    const int group = threadIdx.x / 4, word = threadIdx.x % 4;
    unsigned rows[N_A], columns[N_B];
    for (int i = 0; i < N_A; ++i)
        rows[i] = a[(blockIdx.x * 16 + i % 2 * 8 + group) * WORDS + i / 2 * 4 + word];
    for (int i = 0; i < N_B; ++i)
        columns[i] = b[(blockIdx.x * 8 + group) * WORDS + i * 4 + word];
    Sum c[4];
    for (int i = 0; i < 4; ++i)
        c[i] = sums[(blockIdx.x * 16 + i / 2 * 8 + group) * 8 + 2 * word + i % 2];
    mma(c, rows, columns);
    for (int i = 0; i < 4; ++i)
        sums[(blockIdx.x * 16 + i / 2 * 8 + group) * 8 + 2 * word + i % 2] = c[i];
}

extern "C" __global__ void mma_m16n8k32_s8(int* sums, const unsigned* a, const unsigned* b)
{
    multiply<int, 4, 2>(sums, a, b);
}

extern "C" __global__ void mma_m16n8k16_s8(int* sums, const unsigned* a, const unsigned* b)
{
    multiply<int, 2, 1>(sums, a, b);
}

extern "C" __global__ void mma_m16n8k16_f16(float* sums, const unsigned* a, const unsigned* b)
{
    multiply<float, 4, 2>(sums, a, b);
}

// Each form of ldmatrix, from rows that lie 48 bytes apart, in an order of their own. out: [2][7][32].
template <int N, bool TRANSPOSED>
__device__ unsigned* load(unsigned* out, const unsigned char (*rows)[48])
{
    const int row = threadIdx.x < 8 * N ? (5 * threadIdx.x + 3) % 32 : 0;
    unsigned words[N];
    if (TRANSPOSED)
        load_matrices_transposed(words, rows[row]);
    else
        load_matrices(words, rows[row]);
    for (int i = 0; i < N; ++i)
        out[32 * i + threadIdx.x] = words[i];
    return out + 32 * N;
}

extern "C" __global__ void ldmatrix(unsigned* out, const unsigned char* in)
{
    __shared__ __align__(16) unsigned char rows[32][48];
    for (int i = 0; i < 16; ++i)
        rows[threadIdx.x][i] = in[16 * threadIdx.x + i];
    __syncwarp();  // rows are read by other lanes
    out = load<1, false>(out, rows);
    out = load<2, false>(out, rows);
    out = load<4, false>(out, rows);
    out = load<1, true>(out, rows);
    out = load<2, true>(out, rows);
    load<4, true>(out, rows);
}
