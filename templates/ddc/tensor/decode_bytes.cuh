// Decode, to bytes: packed samples become bytes, four at a time, in the registers of a product's operands.
// Needs     Shape; lib/opaque.cuh (opaque), part.cuh (Words, Operands)
// Provides  DecodeBytes: the same names as DecodeHalves of decode_halves.cuh. Bytes that `decode` returns have bits of
//           other samples below their own bits; `finished` clears these
// A sample becomes one byte, or two if it has more than 8 bits. The first byte has the top bits of the sample, and the
// second, which is unsigned, has the rest. Bits are at the top of their byte, so samples are multiplied by
// 2^(8 OPERANDS_PER_SAMPLE - SAMPLE_BITS).
// Any sample of a step may be multiplied by any row of the weights, if both are in the same order. Lane l1 l0 of a row
// takes every fourth group, from group l1 l0 on. Samples that are P = BYTE_PERIOD apart start at the same bit of a
// byte. Four of them share a register, so two shifts serve all four. With B = BYTES_PER_PERIOD:
//     group              4 P samples, 4 B bytes: whole words
//     gathered g         its bytes g, g + B, g + 2 B, g + 3 B, for g < B
//     samples j + P (0 1 2 3), which start at bit o of byte s:     gathered s << o | gathered (s + 1) >> (8 - o)
//     register q of a step, for one row, which product q / 2 takes:     j = q % P of the lane's group q / P
// If all steps start at the same bit of a word and the weights leave room, runs start up to 3 P samples earlier
// (`skew`), so that groups are also whole words of shared memory (GROUPS_ARE_WORDS).
template <class Shape>
struct DecodeBytes {
    static constexpr int BYTES_PER_PERIOD = Shape::BYTE_PERIOD * SAMPLE_BITS / 8;
    static_assert(Shape::STEPS_ARE_BYTES, "groups start at whole bytes");
    static_assert(Shape::SAMPLES_PER_GROUP == 4 * Shape::BYTE_PERIOD, "four samples share a register");
    static_assert(Shape::WORDS_PER_GROUP == BYTES_PER_PERIOD + !Shape::GROUPS_ARE_WORDS);

    int bit;  // first bit of the lane's first group, in its row of a stage
    unsigned selector;  // takes the four bytes of a word from two words
    unsigned top_bits[Shape::OPERANDS_PER_SAMPLE];  // mask of each byte's own bits

    // `rest` is the byte at which a row starts in its first 16 bytes.
    __device__ __forceinline__ explicit DecodeBytes(int rest) : bit(rest * 8 + threadIdx.x % 4 * Shape::BITS_PER_GROUP)
    {
#pragma unroll
        for (int i = 0; i < Shape::OPERANDS_PER_SAMPLE; ++i) {
            const int n_bits = SAMPLE_BITS - 8 * i < 8 ? SAMPLE_BITS - 8 * i : 8;
            top_bits[i] = opaque((0xff00u >> n_bits & 0xff) * 0x01010101u);
        }
        align_to(bit);
    }

    // Returns by how many samples the block's runs start earlier, so that groups start at whole words.
    __device__ __forceinline__ static int skew_of(long long first_byte)
    {
        const int bytes = static_cast<int>(first_byte & 3);  // BYTES_PER_PERIOD is 2, or an odd number
        return Shape::GROUPS_ARE_WORDS
            ? Shape::BYTE_PERIOD * (BYTES_PER_PERIOD == 2 ? bytes / 2 : bytes * BYTES_PER_PERIOD & 3)
            : 0;
    }

    // Returns which sample of a product lane 0 (of the four of a row) has in byte `b` (0: the lowest) of register `r`.
    // The samples of the other lanes follow at a distance of SAMPLES_PER_GROUP.
    __host__ __device__ static constexpr int sample_of(unsigned product, int r, int b)
    {
        const unsigned q = 2 * product + r;
        const int first = q / Shape::BYTE_PERIOD * (4 * Shape::SAMPLES_PER_GROUP);
        return first + q % Shape::BYTE_PERIOD + b * Shape::BYTE_PERIOD;
    }

    // Sets the selector for groups that start at this bit of their row.
    __device__ __forceinline__ void align_to(int group_bit)
    {
        selector = opaque(0x3210u + 0x1111u * (group_bit >> 3 & 3));
    }

    // Decodes the words of the part's first `n` products to bytes. Samples are in the top bits of bytes, with any bits
    // below them.
    __device__ __forceinline__ void decode(Operands<Shape>& bytes, const Words<Shape>& words, int n) const
    {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            unsigned groups[Shape::GROUPS_PER_PART][BYTES_PER_PERIOD] = {};
#pragma unroll
            for (int i = 0; i < Shape::GROUPS_PER_PART * BYTES_PER_PERIOD; ++i) {
                const int g = i / BYTES_PER_PERIOD, w = i % BYTES_PER_PERIOD;
                const int next = Shape::GROUPS_ARE_WORDS ? w : w + 1;
                if (g * Shape::BYTE_PERIOD >= 2 * n)
                    continue;
                groups[g][w] = words[row][g][w];
                if constexpr (!Shape::GROUPS_ARE_WORDS)
                    groups[g][w] = __byte_perm(groups[g][w], words[row][g][next], selector);
            }
            decode_from<0>(bytes, row, groups);
        }
    }

    // Clears the bits below each byte's own by an instruction that the compiler can neither leave out nor move.
    // `number` is that of the operand among the operands of the part.
    __device__ __forceinline__ unsigned finished(unsigned bytes, int number) const
    {
        const unsigned own = top_bits[number % Shape::OPERANDS_PER_SAMPLE];
#ifdef AUTOTUNE_HOST
        return bytes & own;
#else
        unsigned result;
        asm volatile("and.b32 %0, %1, %2;" : "=r"(result) : "r"(bytes), "r"(own));
        return result;
#endif
    }

private:
    // Decodes register Q and the later ones, for one row.
    template <int Q>
    __device__ __forceinline__ void decode_from(
        Operands<Shape>& bytes, int row, const unsigned (&groups)[Shape::GROUPS_PER_PART][BYTES_PER_PERIOD]) const
    {
        if constexpr (Q < 2 * Shape::MMAS_PER_PART) {
            constexpr int AT = Q % Shape::BYTE_PERIOD * SAMPLE_BITS;
            constexpr int OPERAND = Q / 2 * Shape::OPERANDS_PER_SAMPLE, R = Q % 2 * 2;
            bytes[OPERAND][R + row] = bits_of<AT, (SAMPLE_BITS < 8 ? SAMPLE_BITS : 8)>(groups[Q / Shape::BYTE_PERIOD]);
            if constexpr (Shape::OPERANDS_PER_SAMPLE > 1)
                bytes[OPERAND + 1][R + row] = bits_of<AT + 8, SAMPLE_BITS - 8>(groups[Q / Shape::BYTE_PERIOD]);
            decode_from<Q + 1>(bytes, row, groups);
        }
    }

    // Returns bits [AT, AT + N) of each of the group's four periods of BYTES_PER_PERIOD bytes, in the top bits of four
    // bytes, with any bits below them.
    template <int AT, int N>
    __device__ __forceinline__ static unsigned bits_of(const unsigned (&words)[BYTES_PER_PERIOD])
    {
        constexpr int s = AT / 8, o = AT % 8;
        if constexpr (o + N <= 8) {
            return gathered<s>(words) << o;
        } else {
            constexpr unsigned UPPER = (0xff << o & 0xff) * 0x01010101u;
            return gathered<s>(words) << o & UPPER | gathered<s + 1>(words) >> (8 - o) & ~UPPER;
        }
    }

    // Returns byte G of each of the group's four periods of BYTES_PER_PERIOD bytes.
    template <int G>
    __device__ __forceinline__ static unsigned gathered(const unsigned (&words)[BYTES_PER_PERIOD])
    {
        constexpr int b0 = G, b1 = G + BYTES_PER_PERIOD, b2 = G + 2 * BYTES_PER_PERIOD, b3 = G + 3 * BYTES_PER_PERIOD;
        constexpr unsigned low = b0 % 4 | (b1 % 4 | (b1 / 4 > b0 / 4) * 4) << 4;  // selects bytes b0 and b1
        if constexpr (BYTES_PER_PERIOD == 1) {
            return words[0];
        } else if constexpr (BYTES_PER_PERIOD == 2) {
            return __byte_perm(words[0], words[1], 0x6420 + G * 0x1111);
        } else if constexpr (BYTES_PER_PERIOD == 3) {  // two bytes of one word: 0 and 1, 1 and 2, or 2 and 3
            constexpr unsigned middle = (b2 % 4 | (b2 / 4 > 0) * 4) << 8;
            const unsigned most = __byte_perm(words[0], words[1], low | middle);
            return __byte_perm(most, words[2], 0x10 | (b2 / 4 < 2 ? 2 : 4 + b2 % 4) << 8 | (4 + b3 % 4) << 12);
        } else {
            constexpr unsigned high = b2 % 4 | (b3 % 4 | (b3 / 4 > b2 / 4) * 4) << 4;
            return __byte_perm(
                __byte_perm(words[b0 / 4], words[b1 / 4], low), __byte_perm(words[b2 / 4], words[b3 / 4], high),
                0x5410);
        }
    }
};
