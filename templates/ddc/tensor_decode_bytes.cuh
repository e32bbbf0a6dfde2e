// Samples become bytes in the registers that a product takes them from: one, or two if they have more than 8 bits. The
// first one has the top bits of the sample, the second one, unsigned, the others, each in its own top bits: samples are
// multiplied by 2^(8 SAMPLE_BYTES - SAMPLE_BITS).
// Which of a step's samples is which row of the weights is free: lane l1 l0 of a row takes group l1 l0 of each four.
// Samples APART start at the same bit of a byte. Four such samples share a register, so that two shifts serve all four:
//     group              4 APART samples, 4 STRIDE bytes: whole words
//     gathered g         its bytes g, g + STRIDE, g + 2 STRIDE, g + 3 STRIDE, for g < STRIDE
//     samples j + APART (0 1 2 3), which start at bit o of byte s:     gathered s << o | gathered (s + 1) >> (8 - o)
//     register q of a step's, for one row, which product q / 2 takes:     j = q % APART of the lane's group q / APART
// Where all steps start alike within a word and the weights leave the room, runs start up to 3 APART samples earlier
// (`skew`), so that groups are words of shared memory, too.
constexpr int APART = SAMPLE_BITS % 8 == 0 ? 1 : SAMPLE_BITS % 4 == 0 ? 2 : SAMPLE_BITS % 2 == 0 ? 4 : 8;
constexpr int STRIDE = APART * SAMPLE_BITS / 8;  // bytes
constexpr int GROUP_STEPS = APART < 2 ? 1 : APART / 2;  // products that whole groups are samples for
constexpr int GROUP = 4 * APART;  // samples
constexpr int GROUP_BITS = GROUP * SAMPLE_BITS;
constexpr int ROOM = LIVE * STEP_SAMPLES - TAPS - (STEP - 1) * DECIMATION;
constexpr bool WHOLE_BYTES = STEP_BITS % 8 == 0;  // a step
constexpr bool ALIGNED = STEP_BITS % 32 == 0 && RUN * DECIMATION * SAMPLE_BITS % 32 == 0 && ROOM >= 3 * APART;
constexpr int GROUP_WORDS = ALIGNED ? STRIDE : STRIDE + 1;

{% include "ddc/tensor_parts.cuh" %}

constexpr int PART_GROUPS = 2 * PART_STEPS / APART;
constexpr int GROUP_STRIDE = 4 * STRIDE;  // words from group to group of a lane
constexpr int PART_WORDS = PART_GROUPS * GROUP_STRIDE;
static_assert(WHOLE_BYTES, "groups start at whole bytes");

// The sample of a product's row 0 (of 0 to 3: a lane), register `r` and byte `b` of it (0: the low one); those of the
// other rows follow GROUP samples apart.
__host__ __device__ constexpr int sample_of(unsigned product, int r, int b)
{
    const unsigned q = 2 * product + r;
    return q / APART * (4 * GROUP) + q % APART + b * APART;
}

// Samples by which the block's runs start earlier, so that groups start where they should.
__device__ __forceinline__ int skew_of(long long first_byte)
{
    const int bytes = static_cast<int>(first_byte & 3);  // APART samples are STRIDE bytes: 2, or an odd number
    return ALIGNED ? APART * (STRIDE == 2 ? bytes / 2 : bytes * STRIDE & 3) : 0;
}

typedef unsigned Words[2][PART_GROUPS][GROUP_WORDS];  // [row of the lane's two]

// Byte G of a group and those STRIDE, 2 STRIDE and 3 STRIDE behind it.
template <int G>
__device__ __forceinline__ unsigned gathered(const unsigned (&words)[STRIDE])
{
    constexpr int b0 = G, b1 = G + STRIDE, b2 = G + 2 * STRIDE, b3 = G + 3 * STRIDE;
    constexpr unsigned low = b0 % 4 | (b1 % 4 | (b1 / 4 > b0 / 4) * 4) << 4;  // of the words of bytes 0 and 1
    if constexpr (STRIDE == 1) {
        return words[0];
    } else if constexpr (STRIDE == 2) {
        return __byte_perm(words[0], words[1], 0x6420 + G * 0x1111);
    } else if constexpr (STRIDE == 3) {  // two bytes of one of the three words: 0 and 1, 1 and 2, or 2 and 3
        constexpr unsigned middle = (b2 % 4 | (b2 / 4 > 0) * 4) << 8;
        const unsigned most = __byte_perm(words[0], words[1], low | middle);
        return __byte_perm(most, words[2], 0x10 | (b2 / 4 < 2 ? 2 : 4 + b2 % 4) << 8 | (4 + b3 % 4) << 12);
    } else {
        constexpr unsigned high = b2 % 4 | (b3 % 4 | (b3 / 4 > b2 / 4) * 4) << 4;
        return __byte_perm(
            __byte_perm(words[b0 / 4], words[b1 / 4], low), __byte_perm(words[b2 / 4], words[b3 / 4], high), 0x5410);
    }
}

// Bits [AT, AT + N) of four samples' groups of STRIDE bytes, in the top bits of bytes, whatever is below them.
template <int AT, int N>
__device__ __forceinline__ unsigned bits_of(const unsigned (&words)[STRIDE])
{
    constexpr int s = AT / 8, o = AT % 8;
    if constexpr (o + N <= 8) {
        return gathered<s>(words) << o;
    } else {
        constexpr unsigned UPPER = (0xff << o & 0xff) * 0x01010101u;
        return gathered<s>(words) << o & UPPER | gathered<s + 1>(words) >> (8 - o) & ~UPPER;
    }
}

struct Decoder {
    int bit;  // of the lane's first group, in its row of a stage
    unsigned selector;  // of the four bytes of a word in two
    unsigned top_bits[SAMPLE_BYTES];  // those of each byte that are its own

    // `rest`: where in its first 16 bytes a row starts.
    __device__ __forceinline__ explicit Decoder(int rest) : bit(rest * 8 + threadIdx.x % 4 * GROUP_BITS)
    {
#pragma unroll
        for (int i = 0; i < SAMPLE_BYTES; ++i) {
            const int n_bits = SAMPLE_BITS - 8 * i < 8 ? SAMPLE_BITS - 8 * i : 8;
            top_bits[i] = kept((0xff00u >> n_bits & 0xff) * 0x01010101u);
        }
        turn_to(bit);
    }

    // What follows is for groups that start at this bit of their row.
    __device__ __forceinline__ void turn_to(int group_bit)
    {
        selector = kept(0x3210u + 0x1111u * (group_bit >> 3 & 3));
    }

    // Register Q and those behind it, of one row.
    template <int Q>
    __device__ __forceinline__ void decode_from(
        unsigned (&samples)[PART_STEPS * SAMPLE_BYTES][4], int row, const unsigned (&groups)[PART_GROUPS][STRIDE]) const
    {
        if constexpr (Q < 2 * PART_STEPS) {
            constexpr int AT = Q % APART * SAMPLE_BITS, PRODUCT_BYTES = Q / 2 * SAMPLE_BYTES, R = Q % 2 * 2;
            samples[PRODUCT_BYTES][R + row] = bits_of<AT, (SAMPLE_BITS < 8 ? SAMPLE_BITS : 8)>(groups[Q / APART]);
            if constexpr (SAMPLE_BYTES > 1)
                samples[PRODUCT_BYTES + 1][R + row] = bits_of<AT + 8, SAMPLE_BITS - 8>(groups[Q / APART]);
            decode_from<Q + 1>(samples, row, groups);
        }
    }

    // Samples of the part's first `n` products, in the top bits of bytes, whatever is below them.
    __device__ __forceinline__ void decode(
        unsigned (&samples)[PART_STEPS * SAMPLE_BYTES][4], const Words& words, int n) const
    {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            unsigned groups[PART_GROUPS][STRIDE] = {};
#pragma unroll
            for (int i = 0; i < PART_GROUPS * STRIDE; ++i) {
                const int g = i / STRIDE, w = i % STRIDE, next = ALIGNED ? w : w + 1;
                if (g * APART >= 2 * n)
                    continue;
                groups[g][w] = words[row][g][w];
                if constexpr (!ALIGNED)
                    groups[g][w] = __byte_perm(groups[g][w], words[row][g][next], selector);
            }
            decode_from<0>(samples, row, groups);
        }
    }
};
