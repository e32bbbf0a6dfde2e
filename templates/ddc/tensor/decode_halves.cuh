// Decode, to halves: packed samples become halves in the registers that a product takes them from.
// Needs     Shape; lib/bits.cuh (and_xor), lib/opaque.cuh (opaque), lib/vector.cuh (ceil_div),
//           part.cuh (Words, Operands)
// Provides  DecodeHalves: skew_of, sample_of: which sample meets which row of the weights
//           its constructor, align_to, bit: where a lane's first group starts in its row of a stage
//           decode, then finished: words -> halves above BIAS -> halves. `unbiased` is finished for mma_sync
// Any sample of a step may meet any row of the weights: lane l1 l0 of a row takes SAMPLES_PER_GROUP
// consecutive ones, whole bytes, from each MMAS_PER_GROUP products.
//     fragment of product m: lane l has samples m 16 + 4 l + (0 1 2 3) of the row, if groups are of 4; a register holds
//     two, the first in its high half. Rows l4 l3 l2 and 8 + l4 l3 l2 alternate from register to register.
// A half is made of a field without a conversion: below the exponent of 1024 a field is worth what it says.
//     (field ^ sign bit) | half(1024) = 1024 + sample + 2^(SAMPLE_BITS-1), and one exact subtraction leaves the sample
// 11 and 12 bits are two fields, of which the upper one is multiplied by 4 as it is added.
// Samples of even widths that are BYTE_PERIOD apart start at the same bit of a byte. They share a register, so that one
// PRMT finds the bytes of both, and one shift and one mask serve both:
//     product m, lane l, pair j of its group (register j % 2)     samples j (high half) and j + BYTE_PERIOD
//                                                                 of 8 bits, 2 j and 2 j + 1
// Where a group then lies in two words only if it starts at an even byte, runs may have to start BYTE_PERIOD samples
// earlier (`skew`): the weights must leave the room.
// Where steps start at any bit of a byte, groups do, too: words are shifted into place, and samples taken one by one.
#include <cuda_fp16.h>

template <class Shape>
struct DecodeHalves {
    static constexpr int ALIGNED_WORDS = ceil_div(Shape::BITS_PER_GROUP, 32);
    // A group is loaded from the byte on in which it starts.
    static constexpr int SHIFTED_WORDS = ceil_div(Shape::BITS_PER_GROUP + (Shape::STEPS_ARE_BYTES ? 0 : 7), 32);
    // A pair of samples lies in the first 5 bytes of its group: one PRMT finds its bytes in two words, wherever they
    // start.
    static constexpr bool NARROW =
        Shape::STEPS_ARE_BYTES && !Shape::SAMPLES_ARE_PAIRED && SAMPLE_BITS % 2 == 0 && SAMPLE_BITS <= 10;
    static constexpr bool SAME_BYTES = SAMPLE_BITS <= 4;  // all pairs of a group are in the same two
    static constexpr int LOW_BITS = SAMPLE_BITS < 10 ? SAMPLE_BITS : 10;  // the mantissa's
    static constexpr int TOP_BITS = SAMPLE_BITS - LOW_BITS;
    static constexpr unsigned EXPONENT = 0x6400;  // of 1024
    // Decoding leaves halves that are too large by so much.
    static constexpr unsigned BIAS = TOP_BITS == 0 ? EXPONENT | 1u << (SAMPLE_BITS - 1) : 0;
    static_assert(Shape::MMAS_PER_GROUP * 4 == Shape::SAMPLES_PER_GROUP && Shape::OPERANDS_PER_SAMPLE == 1);
    static_assert(Shape::MMAS_PER_GROUP * SAMPLE_BITS % 2 == 0, "groups start alike within a word");

    int bit;  // of the lane's first group, in its row of a stage
    int shift;  // by which groups start behind a whole byte, where steps do
    // There is one for each pair, if samples are paired (selector_of); for samples 0 and 1, 2 and 3, if NARROW; or one.
    unsigned selectors[4];

    // `rest`: where in its first 16 bytes a row starts.
    __device__ __forceinline__ explicit DecodeHalves(int rest) : bit(rest * 8 + threadIdx.x % 4 * Shape::BITS_PER_GROUP)
    {
        align_to(bit);
    }

    // Returns by how many samples the block's runs start earlier, so that groups start where they should.
    __device__ __forceinline__ static int skew_of(long long first_byte)
    {
        return Shape::GROUPS_START_EVEN && first_byte % 2 != 0 ? Shape::BYTE_PERIOD : 0;  // an odd number of bytes
    }

    // Returns the sample of a product's row 0 (of 0 to 3: a lane), register `r` and half `h` of it (0: the low one);
    // those of the other rows follow SAMPLES_PER_GROUP samples apart.
    __host__ __device__ static constexpr int sample_of(unsigned product, int r, int h)
    {
        const int first = product / Shape::MMAS_PER_GROUP * (4 * Shape::SAMPLES_PER_GROUP);
        const int in_group = product % Shape::MMAS_PER_GROUP;
        return Shape::SAMPLES_ARE_PAIRED ? first + leader_of(in_group * 2 + r) + Shape::BYTE_PERIOD * (1 - h)
                                     : first + in_group * 4 + r * 2 + 1 - h;
    }

    // Gets ready for groups that start at this bit of their row.
    __device__ __forceinline__ void align_to(int group_bit)
    {
        shift = Shape::STEPS_ARE_BYTES ? 0 : opaque(group_bit & 7);
        const unsigned rest = 0x1111u * (group_bit >> 3 & 3);
        if constexpr (Shape::SAMPLES_ARE_PAIRED && SAMPLE_BITS == 10) {  // of four bytes; samples 0, 4; samples 3, 7
            selectors[0] = opaque(rest + 0x4321u);
            selectors[1] = opaque(0x0145u + (rest & 0xff00u));
            selectors[2] = opaque(0x2345u + (rest & 0x00ffu));
        } else if constexpr (Shape::SAMPLES_ARE_PAIRED) {
#pragma unroll
            for (int pair = 0; pair < (SAME_BYTES ? 1 : Shape::SAMPLES_PER_GROUP / 2); ++pair)
                selectors[pair] = opaque(rest + selector_of(leader_of(pair)));
        } else if constexpr (NARROW) {
            selectors[0] = opaque(rest + selector(0));
            selectors[1] = opaque(rest + selector(2));
        } else {
            selectors[0] = opaque(rest + 0x0123u);
        }
    }

    // Makes halves above BIAS of the words of the part's first `n` products.
    __device__ __forceinline__ void decode(
        Operands<Shape>& halves, const Words<Shape>& words, int n = Shape::MMAS_PER_PART) const
    {
#pragma unroll
        for (int i = 0; i < 2 * Shape::GROUPS_PER_PART; ++i) {
            const int g = i / 2, r = i % 2;
            if (g * Shape::MMAS_PER_GROUP >= n)
                continue;
            if constexpr (Shape::SAMPLES_ARE_PAIRED && SAMPLE_BITS == 10)
                decode_pairs_of_10(halves, g * Shape::MMAS_PER_GROUP, r, words[r][g]);
            else if constexpr (Shape::SAMPLES_ARE_PAIRED)
                decode_pairs(halves, g * Shape::MMAS_PER_GROUP, r, words[r][g]);
            else
                decode_group<0>(halves, g * Shape::MMAS_PER_GROUP, r, words[r][g]);
        }
    }

    // Takes BIAS away, by an instruction that the compiler cannot leave out or move.
    __device__ __forceinline__ unsigned finished(unsigned halves, int) const
    {
#ifdef AUTOTUNE_HOST
        return unbiased(halves);
#else
        constexpr unsigned LESS = BIAS == 0 ? 0 : (0x8000 | BIAS) * 0x10001;
        unsigned result;
        asm volatile("add.f16x2 %0, %1, %2;" : "=r"(result) : "r"(halves), "r"(LESS));
        return result;
#endif
    }

    __device__ __forceinline__ static unsigned unbiased(unsigned halves)
    {
        return BIAS == 0 ? halves : as_word(__hadd2(as_halves(halves), __half2half2(__ushort_as_half(0x8000 | BIAS))));
    }

private:
    // ---- groups of samples that are taken one by one: the two registers of product IN_GROUP of a group, and behind it
    template <int IN_GROUP>
    __device__ __forceinline__ void decode_group(
        Operands<Shape>& halves, int first, int r, const unsigned (&words)[Shape::WORDS_PER_GROUP]) const
    {
        if constexpr (IN_GROUP < Shape::MMAS_PER_GROUP) {
            if constexpr (NARROW) {
                const unsigned t0 = __byte_perm(words[0], words[1], selectors[0]);
                const unsigned t1 = __byte_perm(words[0], words[1], selectors[1]);
                halves[first][r] = two_halves(t0 >> shift_of(0), t0 >> shift_of(1));
                halves[first][2 + r] = two_halves(t1 >> shift_of(2), t1 >> shift_of(3));
            } else {
                unsigned aligned[ALIGNED_WORDS];
                unsigned whole[SHIFTED_WORDS];  // from a byte on
#pragma unroll
                for (int w = 0; w < SHIFTED_WORDS; ++w)
                    whole[w] = __byte_perm(words[w], words[w + 1 < Shape::WORDS_PER_GROUP ? w + 1 : w], selectors[0]);
#pragma unroll
                for (int w = 0; w < ALIGNED_WORDS; ++w)
                    aligned[w] = Shape::STEPS_ARE_BYTES
                        ? whole[w]
                        : __funnelshift_l(w + 1 < SHIFTED_WORDS ? whole[w + 1] : 0, whole[w], shift);
                constexpr int A = IN_GROUP * 4;
                halves[first + IN_GROUP][r] = two_halves(place<A, 16>(aligned), place<A + 1, 0>(aligned));
                halves[first + IN_GROUP][2 + r] = two_halves(place<A + 2, 16>(aligned), place<A + 3, 0>(aligned));
            }
            decode_group<IN_GROUP + 1>(halves, first, r, words);
        }
    }

    __host__ __device__ static constexpr unsigned selector(int sample)
    {
        return byte_of(sample) * 0x1100u + 0x0100u + byte_of(sample + 1) * 0x0011u + 0x0001u;
    }

    // Returns which two bytes one PRMT takes for a sample, most significant first.
    __host__ __device__ static constexpr int byte_of(int sample)
    {
        const int first = sample * SAMPLE_BITS / 8;
        const bool in_one = (sample + 1) * SAMPLE_BITS <= (first + 1) * 8;
        return in_one && first > 0 ? first - 1 : first;  // the second of the two, so that none is past the group's end
    }

    // Returns the bits behind it in those two bytes.
    __host__ __device__ static constexpr int shift_of(int sample)
    {
        return (byte_of(sample) + 2) * 8 - (sample + 1) * SAMPLE_BITS;
    }

    // Bits [at, at + SAMPLE_BITS) are sample number SAMPLE of a group, most significant bit first.
    template <int SAMPLE, int AT>
    __device__ __forceinline__ static unsigned place(const unsigned (&group)[ALIGNED_WORDS])
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

    // ---- pairs of samples that start at the same bit of a byte: the registers of a group's products, from `first` on
    __device__ __forceinline__ void decode_pairs(
        Operands<Shape>& halves, int first, int r, const unsigned (&words)[Shape::WORDS_PER_GROUP]) const
    {
#pragma unroll
        for (int pair = 0; pair < Shape::SAMPLES_PER_GROUP / 2; ++pair) {
            const int leader = leader_of(pair);
            const unsigned bytes = __byte_perm(words[0], words[1], selectors[SAME_BYTES ? 0 : pair]);
            halves[first + pair / 2][pair % 2 * 2 + r] =
                two_halves(bytes >> ((last_byte_of(leader) + 1) * 8 - (leader + 1) * SAMPLE_BITS));
        }
    }

    // The four registers of two products of 10 bits, for one row: a register has bytes i, i + 1, i + 5 and i + 6 of the
    // group.
    __device__ __forceinline__ void decode_pairs_of_10(
        Operands<Shape>& halves, int first, int r, const unsigned (&words)[Shape::WORDS_PER_GROUP]) const
    {
        constexpr int LAST = Shape::WORDS_PER_GROUP - 1;
        const unsigned bytes_1 = __byte_perm(words[0], words[1], selectors[0]);  // 1 to 4
        const unsigned bytes_5 = __byte_perm(words[1], words[LAST], selectors[0]);  // 5 to 8
        halves[first][r] = two_halves(__byte_perm(words[0], bytes_5, selectors[1]) >> 6);
        halves[first][2 + r] = two_halves(__byte_perm(bytes_1, bytes_5, 0x0156) >> 4);
        halves[first + Shape::MMAS_PER_GROUP - 1][r] = two_halves(__byte_perm(bytes_1, bytes_5, 0x1267) >> 2);
        halves[first + Shape::MMAS_PER_GROUP - 1][2 + r] = two_halves(__byte_perm(bytes_1, words[LAST], selectors[2]));
    }

    // Returns the first sample of pair `pair` of a group.
    __host__ __device__ static constexpr int leader_of(int pair)
    {
        return Shape::BYTE_PERIOD == 1 ? 2 * pair : pair;
    }

    // Selects the bytes of sample `leader`, most significant first, and of the one BYTE_PERIOD behind it; where a
    // sample lies in one byte, twice that byte.
    __host__ __device__ static constexpr unsigned selector_of(int leader)
    {
        const int from_first_to_other = Shape::BYTE_PERIOD * SAMPLE_BITS / 8;
        return leader * SAMPLE_BITS / 8 * 0x1010u + last_byte_of(leader) * 0x0101u + from_first_to_other * 0x0011u;
    }

    __host__ __device__ static constexpr int last_byte_of(int sample) { return ((sample + 1) * SAMPLE_BITS - 1) / 8; }

    // ---- fields to halves
    // Makes halves above BIAS of samples in the low SAMPLE_BITS of halves, whatever is above them.
    __device__ __forceinline__ static unsigned two_halves(unsigned fields)
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

    // Does so with two words: one has a sample in the low SAMPLE_BITS of its high half, the other of its low half.
    __device__ __forceinline__ static unsigned two_halves(unsigned high, unsigned low)
    {
        if constexpr (TOP_BITS == 0) {
            constexpr unsigned LOW = (1u << LOW_BITS) - 1;
            return and_xor(low, LOW, and_xor(high, LOW << 16, BIAS * 0x10001));
        } else {
            constexpr unsigned ALL = (1u << SAMPLE_BITS) - 1;
            return two_halves(and_xor(low, ALL, and_xor(high, ALL << 16, 0)));
        }
    }

    __device__ __forceinline__ static __half2 as_halves(unsigned word)
    {
        return *reinterpret_cast<const __half2*>(&word);
    }

    __device__ __forceinline__ static unsigned as_word(__half2 halves)
    {
        return *reinterpret_cast<const unsigned*>(&halves);
    }
};
