// Decode, to halves: packed samples become halves, in the registers of a product's operands.
// Needs     Shape; lib/bits.cuh (and_xor), lib/opaque.cuh (opaque), lib/vector.cuh (ceil_div),
//           part.cuh (Words, Operands)
// Provides  DecodeHalves: skew_of, sample_of: which sample meets which row of the weights
//           its constructor, align_to, bit: where a lane's first group starts in its row of a stage
//           decode, then finished: words -> halves above BIAS -> halves. mma_sync uses `unbiased` instead of finished
// Any sample of a step may be multiplied by any row of the weights, if both are in the same order. For each
// MMAS_PER_GROUP products, lane l1 l0 of a row takes SAMPLES_PER_GROUP consecutive samples, which are whole bytes.
//     fragment of product m: with groups of 4, lane l has samples m 16 + 4 l + (0 1 2 3) of the row. A register holds
//     two, the first in its high half. Rows l4 l3 l2 and 8 + l4 l3 l2 alternate from register to register.
// A field becomes a half without a conversion: below the exponent of 1024, the lowest bit of the mantissa is worth 1.
//     (field ^ sign bit) | half(1024) = 1024 + sample + 2^(SAMPLE_BITS-1), and one exact subtraction leaves the sample
// Samples of 11 and 12 bits are two fields; one instruction multiplies the upper one by 4 and adds it to the lower one.
// Samples of even widths that are BYTE_PERIOD apart start at the same bit of a byte. Two of them share a register, so
// one PRMT fetches the bytes of both, and one shift and one mask serve both:
//     product m, lane l, pair j of its group (register j % 2)     samples j (high half) and j + BYTE_PERIOD
//                                                                 with 8 bits, 2 j and 2 j + 1
// Some widths fit a group into two words only if the group starts at an even byte (GROUPS_START_EVEN). Then runs may
// start BYTE_PERIOD samples earlier (`skew`), if the weights leave room for that.
// If steps start at any bit of a byte, so do groups: words are then shifted into place, and samples are taken one by
// one.
#include <cuda_fp16.h>

template <class Shape>
struct DecodeHalves {
    static constexpr int ALIGNED_WORDS = ceil_div(Shape::BITS_PER_GROUP, 32);
    // A group is loaded from the byte on in which it starts.
    static constexpr int SHIFTED_WORDS = ceil_div(Shape::BITS_PER_GROUP + (Shape::STEPS_ARE_BYTES ? 0 : 7), 32);
    // If NARROW, a group lies in 5 bytes: one PRMT fetches a pair of samples from two words, wherever the group starts.
    static constexpr bool NARROW =
        Shape::STEPS_ARE_BYTES && !Shape::SAMPLES_ARE_PAIRED && SAMPLE_BITS % 2 == 0 && SAMPLE_BITS <= 10;
    static constexpr bool SAME_BYTES = SAMPLE_BITS <= 4;  // all pairs of a group lie in the same two bytes
    static constexpr int LOW_BITS = SAMPLE_BITS < 10 ? SAMPLE_BITS : 10;  // bits that fit into the mantissa
    static constexpr int TOP_BITS = SAMPLE_BITS - LOW_BITS;
    static constexpr unsigned EXPONENT = 0x6400;  // the half 1024
    // The half by which decoded halves are too large.
    static constexpr unsigned BIAS = TOP_BITS == 0 ? EXPONENT | 1u << (SAMPLE_BITS - 1) : 0;
    static_assert(Shape::MMAS_PER_GROUP * 4 == Shape::SAMPLES_PER_GROUP && Shape::OPERANDS_PER_SAMPLE == 1);
    static_assert(Shape::MMAS_PER_GROUP * SAMPLE_BITS % 2 == 0, "groups start alike within a word");

    int bit;  // first bit of the lane's first group, in its row of a stage
    int shift;  // bits from a whole byte to the start of a group; 0 if steps are whole bytes
    // If samples are paired, there is a selector for each pair (selector_of). If NARROW, there is one for samples 0 and
    // 1 and one for samples 2 and 3. Otherwise there is a single one.
    unsigned selectors[4];

    // `rest` is the byte at which a row starts in its first 16 bytes.
    __device__ __forceinline__ explicit DecodeHalves(int rest) : bit(rest * 8 + threadIdx.x % 4 * Shape::BITS_PER_GROUP)
    {
        align_to(bit);
    }

    // Returns by how many samples the block's runs start earlier, so that groups start at an even byte.
    __device__ __forceinline__ static int skew_of(long long first_byte)
    {
        return Shape::GROUPS_START_EVEN && first_byte % 2 != 0 ? Shape::BYTE_PERIOD : 0;  // an odd number of bytes
    }

    // Returns which sample of a product lane 0 (of the four of a row) has in half `h` (0: the low one) of register `r`.
    // The samples of the other lanes follow at a distance of SAMPLES_PER_GROUP.
    __host__ __device__ static constexpr int sample_of(unsigned product, int r, int h)
    {
        const int first = product / Shape::MMAS_PER_GROUP * (4 * Shape::SAMPLES_PER_GROUP);
        const int in_group = product % Shape::MMAS_PER_GROUP;
        return Shape::SAMPLES_ARE_PAIRED ? first + leader_of(in_group * 2 + r) + Shape::BYTE_PERIOD * (1 - h)
                                     : first + in_group * 4 + r * 2 + 1 - h;
    }

    // Sets the selectors and the shift for groups that start at this bit of their row.
    __device__ __forceinline__ void align_to(int group_bit)
    {
        shift = Shape::STEPS_ARE_BYTES ? 0 : opaque(group_bit & 7);
        const unsigned rest = 0x1111u * (group_bit >> 3 & 3);
        if constexpr (Shape::SAMPLES_ARE_PAIRED && SAMPLE_BITS == 10) {  // four bytes; samples 0, 4; samples 3, 7
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

    // Decodes the words of the part's first `n` products to halves, which are too large by BIAS.
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

    // Subtracts BIAS by an instruction that the compiler can neither leave out nor move.
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
    // ---- groups whose samples are taken one by one
    // Decodes product IN_GROUP and the later ones of a group, for row r: two registers each.
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
                unsigned whole[SHIFTED_WORDS];  // from the group's first byte on
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

    // Returns the first of the two bytes that one PRMT takes for a sample, most significant first.
    __host__ __device__ static constexpr int byte_of(int sample)
    {
        const int first = sample * SAMPLE_BITS / 8;
        const bool in_one = (sample + 1) * SAMPLE_BITS <= (first + 1) * 8;
        return in_one && first > 0 ? first - 1 : first;  // a sample of one byte is the second, so none is past the end
    }

    // Returns how many bits follow the sample in those two bytes.
    __host__ __device__ static constexpr int shift_of(int sample)
    {
        return (byte_of(sample) + 2) * 8 - (sample + 1) * SAMPLE_BITS;
    }

    // Returns a word whose bits [AT, AT + SAMPLE_BITS) are sample SAMPLE of a group, whatever its other bits are.
    template <int SAMPLE, int AT>
    __device__ __forceinline__ static unsigned place(const unsigned (&group)[ALIGNED_WORDS])
    {
        constexpr int end = (SAMPLE + 1) * SAMPLE_BITS;
        constexpr int word = (end - 1) / 32;
        constexpr int right = (word + 1) * 32 - end - AT;  // bits by which the word is shifted
        constexpr bool in_two = end - SAMPLE_BITS < word * 32;
        if constexpr (right < 0)
            return group[word] << -right;
        else if constexpr (in_two)
            return __funnelshift_r(group[word], group[word - in_two], right);
        else
            return group[word] >> right;
    }

    // ---- pairs of samples that start at the same bit of a byte
    // Decodes a group for row r, to the registers of products from `first` on.
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

    // Decodes a group of 10-bit samples for row r, to the four registers of two products. A register takes bytes i,
    // i + 1, i + 5 and i + 6 of the group.
    __device__ __forceinline__ void decode_pairs_of_10(
        Operands<Shape>& halves, int first, int r, const unsigned (&words)[Shape::WORDS_PER_GROUP]) const
    {
        constexpr int LAST = Shape::WORDS_PER_GROUP - 1;
        const unsigned bytes_1 = __byte_perm(words[0], words[1], selectors[0]);  // bytes 1 to 4
        const unsigned bytes_5 = __byte_perm(words[1], words[LAST], selectors[0]);  // bytes 5 to 8
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

    // Returns the selector of the two bytes of sample `leader`, most significant first, and of those of the sample
    // BYTE_PERIOD behind it. A sample in a single byte takes that byte twice.
    __host__ __device__ static constexpr unsigned selector_of(int leader)
    {
        const int from_first_to_other = Shape::BYTE_PERIOD * SAMPLE_BITS / 8;
        return leader * SAMPLE_BITS / 8 * 0x1010u + last_byte_of(leader) * 0x0101u + from_first_to_other * 0x0011u;
    }

    __host__ __device__ static constexpr int last_byte_of(int sample) { return ((sample + 1) * SAMPLE_BITS - 1) / 8; }

    // ---- fields to halves
    // Returns halves, too large by BIAS, of two samples. `fields` has them in the low SAMPLE_BITS of its two 16-bit
    // halves, with any bits above them.
    __device__ __forceinline__ static unsigned two_halves(unsigned fields)
    {
        constexpr unsigned LOW = (1u << LOW_BITS) - 1;
        const unsigned lower = and_xor(fields, LOW * 0x10001, (EXPONENT | BIAS) * 0x10001);  // 1024 + the low bits
        if constexpr (TOP_BITS == 0) {
            return lower;
        } else {
            constexpr unsigned TOP = ((1u << TOP_BITS) - 1) << 8;  // worth 256 each
            const unsigned upper = and_xor(fields >> 2, TOP * 0x10001, (EXPONENT | 128u << TOP_BITS) * 0x10001);
            // 256 (top bits, signed) - 256, so that 4 times this number also subtracts the 1024 of the lower part.
            const __half2 top = __hadd2(as_halves(upper), __half2half2(__int2half_rn(-(1280 + (128 << TOP_BITS)))));
            return as_word(__hfma2(top, __half2half2(__int2half_rn(4)), as_halves(lower)));
        }
    }

    // Does the same for two words: `high` has a sample in the low SAMPLE_BITS of its high half, `low` one in those of
    // its low half.
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
