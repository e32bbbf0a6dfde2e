// Samples become halves in the registers that a product takes them from. Which of a step's samples is which row of the
// weights is free: lane l1 l0 of a row takes GROUP consecutive ones, whole bytes, from each GROUP_STEPS products.
//     fragment of product m: lane l has samples m 16 + 4 l + (0 1 2 3) of the row, if GROUP is 4; a register holds two,
//     the first in its high half. Rows l4 l3 l2 and 8 + l4 l3 l2 alternate from register to register.
// A half is made of a field without a conversion: below the exponent of 1024 a field is worth what it says.
//     (field ^ sign bit) | half(1024) = 1024 + sample + 2^(SAMPLE_BITS-1), and one exact subtraction leaves the sample
// 11 and 12 bits are two fields, of which the upper one is multiplied by 4 as it is added.
// Of even widths, samples APART start at the same bit of a byte. They share a register, so that one PRMT finds the
// bytes of both, and one shift and one mask serve both:
//     product m, lane l, pair j of its group (register j % 2)     samples j (high half) and j + APART
//                                                                 of 8 bits, 2 j and 2 j + 1
// Where a group then lies in two words only if it starts at an even byte, runs may have to start APART samples earlier
// (`skew`): the weights must leave the room.
// Where steps start at any bit of a byte, groups do, too: words are shifted into place, and samples taken one by one.
#include <cuda_fp16.h>

constexpr bool WHOLE_BYTES = STEP_BITS % 8 == 0;  // a step
constexpr int APART = SAMPLE_BITS % 8 == 0 ? 1 : SAMPLE_BITS % 4 == 0 ? 2 : 4;
constexpr int PAIR_GROUP = APART == 4 ? 8 : 4;
constexpr bool TWO_WORDS = PAIR_GROUP * SAMPLE_BITS / 8 + 3 <= 8;  // hold a group, wherever it starts
constexpr int ROOM = LIVE * STEP_SAMPLES - TAPS - (STEP - 1) * DECIMATION;
constexpr bool PAIRED = WHOLE_BYTES && SAMPLE_BITS % 2 == 0
    && {{ "MOST_PART" if overlaps else "K_STEPS" }} % (PAIR_GROUP / 4) == 0
    && (TWO_WORDS || (STEP_BITS % 16 == 0 && ROOM >= APART));
constexpr bool STARTS_EVEN = PAIRED && !TWO_WORDS;
constexpr int GROUP = PAIRED ? PAIR_GROUP : WHOLE_BYTES && SAMPLE_BITS % 2 == 0 ? 4 : 8;
constexpr int GROUP_STEPS = GROUP / 4;
constexpr int GROUP_BITS = GROUP * SAMPLE_BITS;
constexpr int GROUP_BYTES = GROUP_BITS / 8;
constexpr int ALIGNED_WORDS = ceil_div(GROUP_BYTES, 4);
constexpr int SHIFTED_WORDS = ceil_div(GROUP_BITS + (WHOLE_BYTES ? 0 : 7), 32);  // from the byte on in which it starts
// Bytes of the first word that are before a group, at most, or of a group that starts at any bit, and one it shares.
constexpr int MOST_REST = STARTS_EVEN ? 2 : WHOLE_BYTES ? 3 : 4;
constexpr int GROUP_WORDS = ceil_div(GROUP_BYTES + MOST_REST, 4) > 2 ? ceil_div(GROUP_BYTES + MOST_REST, 4) : 2;
// A pair of samples lies in the first 5 bytes of its group: one PRMT finds its bytes in two words, wherever they start.
constexpr bool NARROW = WHOLE_BYTES && !PAIRED && SAMPLE_BITS % 2 == 0 && SAMPLE_BITS <= 10;

{% include "ddc/tensor_parts.cuh" %}

constexpr int PART_GROUPS = PART_STEPS / GROUP_STEPS;
constexpr int GROUP_STRIDE = GROUP_STEPS * SAMPLE_BITS / 2;  // words from group to group: those of 16 samples a product
constexpr int PART_WORDS = PART_GROUPS * GROUP_STRIDE;
static_assert(GROUP_STEPS * SAMPLE_BITS % 2 == 0, "groups start alike within a word");

// The first sample of pair `pair` of a group.
__host__ __device__ constexpr int leader_of(int pair)
{
    return APART == 1 ? 2 * pair : pair;
}

// The sample of a product's row 0 (of 0 to 3: a lane), register `r` and half `h` of it (0: the low one); those of the
// other rows follow GROUP samples apart.
__host__ __device__ constexpr int sample_of(unsigned product, int r, int h)
{
    const int first = product / GROUP_STEPS * (4 * GROUP), in_group = product % GROUP_STEPS;
    return PAIRED ? first + leader_of(in_group * 2 + r) + APART * (1 - h) : first + in_group * 4 + r * 2 + 1 - h;
}

// One PRMT takes the two bytes that hold it, most significant first.
__host__ __device__ constexpr int byte_of(int sample)
{
    const int first = sample * SAMPLE_BITS / 8;
    const bool in_one = (sample + 1) * SAMPLE_BITS <= (first + 1) * 8;
    return in_one && first > 0 ? first - 1 : first;  // the second of the two, so that none is past the group's end
}

// Bits behind it in those two bytes.
__host__ __device__ constexpr int shift_of(int sample)
{
    return (byte_of(sample) + 2) * 8 - (sample + 1) * SAMPLE_BITS;
}

// Bits [at, at + SAMPLE_BITS) are sample number SAMPLE of a group, most significant bit first.
template <int SAMPLE, int AT>
__device__ __forceinline__ unsigned place(const unsigned (&group)[ALIGNED_WORDS])
{
    constexpr int end = (SAMPLE + 1) * SAMPLE_BITS;
    constexpr int word = (end - 1) / 32;
    constexpr int right = (word + 1) * 32 - end - AT;  // how far to shift
    constexpr bool in_two = end - SAMPLE_BITS < word * 32;
    if constexpr (right < 0)
        return group[word] << -right;
    else if constexpr (in_two)
        return __funnelshift_r(group[word], group[word - in_two], right);
    else
        return group[word] >> right;
}

__device__ __forceinline__ __half2 as_halves(unsigned word)
{
    return *reinterpret_cast<const __half2*>(&word);
}

__device__ __forceinline__ unsigned as_word(__half2 halves)
{
    return *reinterpret_cast<const unsigned*>(&halves);
}

constexpr int LOW_BITS = SAMPLE_BITS < 10 ? SAMPLE_BITS : 10;  // the mantissa's
constexpr int TOP_BITS = SAMPLE_BITS - LOW_BITS;
constexpr unsigned EXPONENT = 0x6400;  // of 1024
constexpr unsigned BIAS = TOP_BITS == 0 ? EXPONENT | 1u << (SAMPLE_BITS - 1) : 0;  // what unbiased() takes away

// Samples in the low SAMPLE_BITS of halves, whatever is above them, as halves above BIAS.
__device__ __forceinline__ unsigned two_halves(unsigned fields)
{
    constexpr unsigned LOW = (1u << LOW_BITS) - 1;
    const unsigned lower = and_xor(fields, LOW * 0x10001, (EXPONENT | BIAS) * 0x10001);  // 1024 + the low bits
    if constexpr (TOP_BITS == 0) {
        return lower;
    } else {
        constexpr unsigned TOP = ((1u << TOP_BITS) - 1) << 8;  // worth 256 each
        const unsigned upper = and_xor(fields >> 2, TOP * 0x10001, (EXPONENT | 128u << TOP_BITS) * 0x10001);
        // 256 (top bits, signed) - 256, so that 4 times it takes the lower part's 1024 away as well
        const __half2 top = __hadd2(as_halves(upper), __half2half2(__int2half_rn(-(1280 + (128 << TOP_BITS)))));
        return as_word(__hfma2(top, __half2half2(__int2half_rn(4)), as_halves(lower)));
    }
}

// The same of two words, of which each has one sample in its low SAMPLE_BITS, or in those of its high half.
__device__ __forceinline__ unsigned two_halves(unsigned high, unsigned low)
{
    if constexpr (TOP_BITS == 0) {
        constexpr unsigned LOW = (1u << LOW_BITS) - 1;
        return and_xor(low, LOW, and_xor(high, LOW << 16, BIAS * 0x10001));
    } else {
        constexpr unsigned ALL = (1u << SAMPLE_BITS) - 1;
        return two_halves(and_xor(low, ALL, and_xor(high, ALL << 16, 0)));
    }
}

__device__ __forceinline__ unsigned unbiased(unsigned halves)
{
    return BIAS == 0 ? halves : as_word(__hadd2(as_halves(halves), __half2half2(__ushort_as_half(0x8000 | BIAS))));
}

// Samples by which the block's runs start earlier, so that groups start where they should.
__device__ __forceinline__ int skew_of(long long first_byte)
{
    return STARTS_EVEN && first_byte % 2 != 0 ? APART : 0;  // an odd number of bytes
}

typedef unsigned Words[2][PART_GROUPS][GROUP_WORDS];  // [row of the lane's two]

// What of unpacking depends on where in its word a lane's group starts. Where steps are whole words, always the same.
struct Decoder {
    static constexpr bool SAME_BYTES = SAMPLE_BITS <= 4;  // all pairs of a group are in the same two
    int bit;  // of the lane's first group, in its row of a stage
    int shift;  // by which groups start behind a whole byte, where steps do
    unsigned selectors[4];  // PAIRED: of each pair, see selector_of; NARROW: of samples 0 and 1, 2 and 3; or of all

    // `rest`: where in its first 16 bytes a row starts.
    __device__ __forceinline__ explicit Decoder(int rest) : bit(rest * 8 + threadIdx.x % 4 * GROUP_BITS)
    {
        turn_to(bit);
    }

    __device__ __forceinline__ int first_word() const { return bit >> 5; }

    // What follows is for groups that start at this bit of their row.
    __device__ __forceinline__ void turn_to(int group_bit)
    {
        shift = WHOLE_BYTES ? 0 : kept(group_bit & 7);
        const unsigned rest = 0x1111u * (group_bit >> 3 & 3);
        if constexpr (PAIRED && SAMPLE_BITS == 10) {  // of four bytes; samples 0 and 4; samples 3 and 7
            selectors[0] = kept(rest + 0x4321u);
            selectors[1] = kept(0x0145u + (rest & 0xff00u));
            selectors[2] = kept(0x2345u + (rest & 0x00ffu));
        } else if constexpr (PAIRED) {
#pragma unroll
            for (int pair = 0; pair < (SAME_BYTES ? 1 : GROUP / 2); ++pair)
                selectors[pair] = kept(rest + selector_of(leader_of(pair)));
        } else if constexpr (NARROW) {
            selectors[0] = kept(rest + selector(0));
            selectors[1] = kept(rest + selector(2));
        } else {
            selectors[0] = kept(rest + 0x0123u);
        }
    }

    __host__ __device__ static constexpr unsigned selector(int sample)
    {
        return byte_of(sample) * 0x1100u + 0x0100u + byte_of(sample + 1) * 0x0011u + 0x0001u;
    }

    // Bytes of sample `leader`, most significant first, and of the one APART; twice the same of what lies in one.
    __host__ __device__ static constexpr unsigned selector_of(int leader)
    {
        const int from_first_to_other = APART * SAMPLE_BITS / 8;
        return leader * SAMPLE_BITS / 8 * 0x1010u + last_byte_of(leader) * 0x0101u + from_first_to_other * 0x0011u;
    }

    __host__ __device__ static constexpr int last_byte_of(int sample) { return ((sample + 1) * SAMPLE_BITS - 1) / 8; }

    // The two registers of products `STEP` of a group, for one row.
    template <int IN_GROUP>
    __device__ __forceinline__ void decode_group(
        unsigned (&samples)[PART_STEPS][4], int first, int r, const unsigned (&words)[GROUP_WORDS]) const
    {
        if constexpr (IN_GROUP < GROUP_STEPS) {
            if constexpr (NARROW) {
                const unsigned t0 = __byte_perm(words[0], words[1], selectors[0]);
                const unsigned t1 = __byte_perm(words[0], words[1], selectors[1]);
                samples[first][r] = two_halves(t0 >> shift_of(0), t0 >> shift_of(1));
                samples[first][2 + r] = two_halves(t1 >> shift_of(2), t1 >> shift_of(3));
            } else {
                unsigned aligned[ALIGNED_WORDS];
                unsigned whole[SHIFTED_WORDS];  // from a byte on
#pragma unroll
                for (int w = 0; w < SHIFTED_WORDS; ++w)
                    whole[w] = __byte_perm(words[w], words[w + 1 < GROUP_WORDS ? w + 1 : w], selectors[0]);
#pragma unroll
                for (int w = 0; w < ALIGNED_WORDS; ++w)
                    aligned[w] = WHOLE_BYTES
                        ? whole[w]
                        : __funnelshift_l(w + 1 < SHIFTED_WORDS ? whole[w + 1] : 0, whole[w], shift);
                constexpr int S = IN_GROUP * 4;
                samples[first + IN_GROUP][r] = two_halves(place<S, 16>(aligned), place<S + 1, 0>(aligned));
                samples[first + IN_GROUP][2 + r] = two_halves(place<S + 2, 16>(aligned), place<S + 3, 0>(aligned));
            }
            decode_group<IN_GROUP + 1>(samples, first, r, words);
        }
    }

    // The four registers of two products of 10 bits, for one row: a register has bytes i, i + 1, i + 5 and i + 6 of the
    // group.
    __device__ __forceinline__ void decode_pairs_of_10(
        unsigned (&samples)[PART_STEPS][4], int first, int r, const unsigned (&words)[GROUP_WORDS]) const
    {
        constexpr int LAST = GROUP_WORDS - 1;
        const unsigned bytes_1 = __byte_perm(words[0], words[1], selectors[0]);  // 1 to 4
        const unsigned bytes_5 = __byte_perm(words[1], words[LAST], selectors[0]);  // 5 to 8
        samples[first][r] = two_halves(__byte_perm(words[0], bytes_5, selectors[1]) >> 6);
        samples[first][2 + r] = two_halves(__byte_perm(bytes_1, bytes_5, 0x0156) >> 4);
        samples[first + GROUP_STEPS - 1][r] = two_halves(__byte_perm(bytes_1, bytes_5, 0x1267) >> 2);
        samples[first + GROUP_STEPS - 1][2 + r] = two_halves(__byte_perm(bytes_1, words[LAST], selectors[2]));
    }

    // The registers of a group's products, from `first` on, for one row.
    __device__ __forceinline__ void decode_pairs(
        unsigned (&samples)[PART_STEPS][4], int first, int r, const unsigned (&words)[GROUP_WORDS]) const
    {
#pragma unroll
        for (int pair = 0; pair < GROUP / 2; ++pair) {
            const int leader = leader_of(pair);
            const unsigned bytes = __byte_perm(words[0], words[1], selectors[SAME_BYTES ? 0 : pair]);
            samples[first + pair / 2][pair % 2 * 2 + r] =
                two_halves(bytes >> ((last_byte_of(leader) + 1) * 8 - (leader + 1) * SAMPLE_BITS));
        }
    }

    // Samples of the part's first `n` products, above BIAS.
    __device__ __forceinline__ void decode(
        unsigned (&samples)[PART_STEPS][4], const Words& words, int n = PART_STEPS) const
    {
#pragma unroll
        for (int i = 0; i < 2 * PART_GROUPS; ++i) {
            const int g = i / 2, r = i % 2;
            if (g * GROUP_STEPS >= n)
                continue;
            if constexpr (PAIRED && SAMPLE_BITS == 10)
                decode_pairs_of_10(samples, g * GROUP_STEPS, r, words[r][g]);
            else if constexpr (PAIRED)
                decode_pairs(samples, g * GROUP_STEPS, r, words[r][g]);
            else
                decode_group<0>(samples, g * GROUP_STEPS, r, words[r][g]);
        }
    }
};
