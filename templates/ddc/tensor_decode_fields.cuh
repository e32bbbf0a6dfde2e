// Samples become bytes in the registers that a product takes them from, one by one: each is shifted to the top of a word
// of its own. Its top byte is the first one; of samples of more than 8 bits the second one, unsigned, has the rest in its
// own top bits. So samples are multiplied by 2^(8 SAMPLE_BYTES - SAMPLE_BITS).
// Which of a step's samples is which row of the weights is free: lane l1 l0 of a row takes group l1 l0 of each four.
//     group              8 consecutive samples: whole bytes, and what a lane has of a product, four to a register
// (Where samples that start at the same bit of a byte share a register, a group is 16 of 2, 6, 10 or 14 bits, for two
// products, and 32 of odd ones, for four.)
// A group of 2 bits is two bytes, which fill a register twice, once moved by half a byte: that has four of its samples
// on top of bytes, and moved by one more sample it has the others.
constexpr int GROUP = 8;  // samples
constexpr int GROUP_STEPS = 1;  // products that whole groups are samples for
constexpr int GROUP_BITS = GROUP * SAMPLE_BITS;
constexpr bool WHOLE_BYTES = STEP_BITS % 8 == 0;  // a step
constexpr int ALIGNED_WORDS = ceil_div(SAMPLE_BITS, 4);
constexpr int SHIFTED_WORDS = ceil_div(GROUP_BITS + (WHOLE_BYTES ? 0 : 7), 32);  // from the byte on in which it starts
// Of SAMPLE_BITS bytes; before them up to 3 of the first word, and at any bit one more that they share.
constexpr int GROUP_WORDS = ceil_div(SAMPLE_BITS + (WHOLE_BYTES ? 3 : 4), 4);

{% include "ddc/tensor_parts.cuh" %}

constexpr int PART_GROUPS = PART_STEPS;
constexpr int GROUP_STRIDE = SAMPLE_BITS;  // words from group to group of a lane: those of 32 samples
constexpr int PART_WORDS = PART_GROUPS * GROUP_STRIDE;

// The sample of a product's row 0 (of 0 to 3: a lane), register `r` and byte `b` of it (0: the low one); those of the
// other rows follow GROUP samples apart.
__host__ __device__ constexpr int sample_of(unsigned product, int r, int b)
{
    return product * (4 * GROUP) + (SAMPLE_BITS == 2 ? 4 * (1 - b % 2) + b / 2 * 2 + r : r * 4 + b);
}

// Samples by which the block's runs start earlier: none, groups may start anywhere.
__device__ __forceinline__ int skew_of(long long)
{
    return 0;
}

typedef unsigned Words[2][PART_GROUPS][GROUP_WORDS];  // [row of the lane's two]

// Sample number I of a group, most significant bit first, in the top bits of a word, whatever is below it.
template <int I>
__device__ __forceinline__ unsigned field(const unsigned (&group)[ALIGNED_WORDS])
{
    constexpr int at = I * SAMPLE_BITS % 32, word = I * SAMPLE_BITS / 32;
    if constexpr (at + SAMPLE_BITS > 32)
        return __funnelshift_l(group[word + 1], group[word], at);
    else
        return group[word] << at;
}

struct Decoder {
    int bit;  // of the lane's first group, in its row of a stage
    int shift;  // by which groups start behind a whole byte, where steps do
    unsigned selector;  // of the four bytes of a word in two, the first one on top
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
        shift = WHOLE_BYTES ? 0 : kept(group_bit & 7);
        selector = kept(0x0123u + 0x1111u * (group_bit >> 3 & 3));
    }

    // Both registers of a product, of one row.
    __device__ __forceinline__ void decode_two_bits(unsigned (*samples)[4], int row, unsigned group) const
    {
        const unsigned twice = __byte_perm(group, 0, 0x3232);
        samples[0][row] = ((twice << 4 ^ twice) & 0xffff0000u) ^ twice;
        samples[0][2 + row] = samples[0][row] << 2;
    }

    // Register R of a product, of one row: samples 4 R to 4 R + 3 of a group.
    template <int R>
    __device__ __forceinline__ void decode_register(
        unsigned (*samples)[4], int row, const unsigned (&group)[ALIGNED_WORDS]) const
    {
        const unsigned a = field<4 * R>(group), b = field<4 * R + 1>(group);
        const unsigned c = field<4 * R + 2>(group), d = field<4 * R + 3>(group);
        // Second bytes, and first ones.
        const unsigned low = __byte_perm(a, b, 0x7362), high = __byte_perm(c, d, 0x7362);
        samples[0][2 * R + row] = __byte_perm(low, high, 0x7632);
        if constexpr (SAMPLE_BYTES > 1)
            samples[1][2 * R + row] = __byte_perm(low, high, 0x5410);
    }

    // Samples of the part's first `n` products, in the top bits of bytes, whatever is below them.
    __device__ __forceinline__ void decode(
        unsigned (&samples)[PART_STEPS * SAMPLE_BYTES][4], const Words& words, int n) const
    {
#pragma unroll
        for (int i = 0; i < 2 * PART_GROUPS; ++i) {
            const int g = i / 2, row = i % 2;
            if (g >= n)
                continue;
            unsigned whole[SHIFTED_WORDS], group[ALIGNED_WORDS];  // from a byte on; from the group's first bit on
#pragma unroll
            for (int w = 0; w < SHIFTED_WORDS; ++w)
                whole[w] = __byte_perm(
                    words[row][g][w], words[row][g][w + 1 < GROUP_WORDS ? w + 1 : w], selector);
#pragma unroll
            for (int w = 0; w < ALIGNED_WORDS; ++w)
                group[w] = WHOLE_BYTES
                    ? whole[w]
                    : __funnelshift_l(w + 1 < SHIFTED_WORDS ? whole[w + 1] : 0, whole[w], shift);
            if constexpr (SAMPLE_BITS == 2) {
                decode_two_bits(samples + g, row, group[0]);
            } else {
                decode_register<0>(samples + g * SAMPLE_BYTES, row, group);
                decode_register<1>(samples + g * SAMPLE_BYTES, row, group);
            }
        }
    }
};
