// Samples of more than 8 bits become two bytes in the registers that a product takes them from, one by one: each is
// shifted to the top of a word of its own, whose top byte is the first one. The second one, unsigned, has the rest of
// the sample in its own top bits: samples are multiplied by 2^(16 - SAMPLE_BITS).
// Which of a step's samples is which row of the weights is free: lane l1 l0 of a row takes group l1 l0 of each four.
//     group              8 consecutive samples: whole bytes, and what a lane has of a product, four to a register
// (Where samples that start at the same bit of a byte share a register, a group is 16 of 10 or 14 bits, for two products,
// and 32 of odd ones, for four.)
constexpr int GROUP = 8;  // samples
constexpr int GROUP_STEPS = 1;  // products that whole groups are samples for
constexpr int GROUP_BITS = GROUP * SAMPLE_BITS;
constexpr bool WHOLE_BYTES = STEP_BITS % 8 == 0;  // a step
constexpr int ALIGNED_WORDS = ceil_div(SAMPLE_BITS, 4);
constexpr int SHIFTED_WORDS = ceil_div(GROUP_BITS + (WHOLE_BYTES ? 0 : 7), 32);  // from the byte on in which it starts
// Of SAMPLE_BITS bytes; before them up to 3 of the first word, and at any bit one more that they share.
constexpr int GROUP_WORDS = ceil_div(SAMPLE_BITS + (WHOLE_BYTES ? 3 : 4), 4);

{% include "ddc/tensor_parts.cuh" %}
static_assert(SAMPLE_BYTES == 2, "what it is for");

constexpr int PART_GROUPS = PART_STEPS;
constexpr int GROUP_STRIDE = SAMPLE_BITS;  // words from group to group of a lane: those of 32 samples
constexpr int PART_WORDS = PART_GROUPS * GROUP_STRIDE;

// The sample of a product's row 0 (of 0 to 3: a lane), register `r` and byte `b` of it (0: the low one); those of the
// other rows follow GROUP samples apart.
__host__ __device__ constexpr int sample_of(int product, int r, int b)
{
    return product * (4 * GROUP) + r * 4 + b;
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
    unsigned top_bits[2];  // those of each byte that are its own

    // `rest`: where in its first 16 bytes a row starts.
    __device__ __forceinline__ explicit Decoder(int rest) : bit(rest * 8 + threadIdx.x % 4 * GROUP_BITS)
    {
        top_bits[0] = kept(0xffffffffu);
        top_bits[1] = kept((0xff0000u >> SAMPLE_BITS & 0xff) * 0x01010101u);
        turn_to(bit);
    }

    // What follows is for groups that start at this bit of their row.
    __device__ __forceinline__ void turn_to(int group_bit)
    {
        shift = WHOLE_BYTES ? 0 : kept(group_bit % 8);
        selector = kept(0x0123u + 0x1111u * (group_bit / 8 % 4));
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
        samples[1][2 * R + row] = __byte_perm(low, high, 0x5410);
    }

    // Samples in the top bits of bytes, whatever is below them.
    __device__ __forceinline__ void decode(unsigned (&samples)[PART_STEPS * SAMPLE_BYTES][4], const Words& words) const
    {
#pragma unroll
        for (int i = 0; i < 2 * PART_GROUPS; ++i) {
            const int g = i / 2, row = i % 2;
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
            decode_register<0>(samples + g * SAMPLE_BYTES, row, group);
            decode_register<1>(samples + g * SAMPLE_BYTES, row, group);
        }
    }
};
