// Decode, to bytes, sample by sample: each sample is shifted to the top of a word of its own.
// Needs     Shape; lib/opaque.cuh (opaque), lib/vector.cuh (ceil_div), part.cuh (Words, Operands)
// Provides  DecodeFields: the same names as DecodeBytes of decode_bytes.cuh. Its steps may start at any bit, and its
//           parts may have any number of products
// The top byte of the word is the sample's first byte. If samples have more than 8 bits, a second byte, which is
// unsigned, has the rest in its top bits. So samples are multiplied by 2^(8 OPERANDS_PER_SAMPLE - SAMPLE_BITS).
// Any sample of a step may be multiplied by any row of the weights, if both are in the same order. Lane l1 l0 of a row
// takes every fourth group, from group l1 l0 on.
//     group              8 consecutive samples, whole bytes, which are a lane's share of one product: four per register
// (In decode_bytes.cuh, a group is 16 samples of 2, 6, 10 or 14 bits, for two products, and 32 samples of odd widths,
// for four.)
// A group of 2-bit samples is two bytes. They are put into a register twice, once moved by half a byte. Then four of
// the samples are on top of bytes, and after a shift by one sample the other four are.
template <class Shape>
struct DecodeFields {
    static constexpr int ALIGNED_WORDS = ceil_div(SAMPLE_BITS, 4);
    // A group is loaded from the byte on in which it starts.
    static constexpr int SHIFTED_WORDS = ceil_div(Shape::BITS_PER_GROUP + (Shape::STEPS_ARE_BYTES ? 0 : 7), 32);
    static_assert(Shape::SAMPLES_PER_GROUP == 8 && Shape::MMAS_PER_GROUP == 1);
    static_assert(Shape::GROUPS_PER_PART == Shape::MMAS_PER_PART);

    int bit;  // first bit of the lane's first group, in its row of a stage
    int shift;  // bits from a whole byte to the start of a group; 0 if steps are whole bytes
    unsigned selector;  // takes the four bytes of a word from two words, the first byte on top
    unsigned top_bits[Shape::OPERANDS_PER_SAMPLE];  // mask of each byte's own bits

    // `rest` is the byte at which a row starts in its first 16 bytes.
    __device__ __forceinline__ explicit DecodeFields(int rest) : bit(rest * 8 + threadIdx.x % 4 * Shape::BITS_PER_GROUP)
    {
#pragma unroll
        for (int i = 0; i < Shape::OPERANDS_PER_SAMPLE; ++i) {
            const int n_bits = SAMPLE_BITS - 8 * i < 8 ? SAMPLE_BITS - 8 * i : 8;
            top_bits[i] = opaque((0xff00u >> n_bits & 0xff) * 0x01010101u);
        }
        align_to(bit);
    }

    // Returns by how many samples the block's runs start earlier: 0, since groups may start anywhere.
    __device__ __forceinline__ static int skew_of(long long)
    {
        return 0;
    }

    // Returns which sample of a product lane 0 (of the four of a row) has in byte `b` (0: the lowest) of register `r`.
    // The samples of the other lanes follow at a distance of SAMPLES_PER_GROUP.
    __host__ __device__ static constexpr int sample_of(unsigned product, int r, int b)
    {
        const int in_group = SAMPLE_BITS == 2 ? 4 * (1 - b % 2) + b / 2 * 2 + r : r * 4 + b;
        return product * (4 * Shape::SAMPLES_PER_GROUP) + in_group;
    }

    // Sets the selector and the shift for groups that start at this bit of their row.
    __device__ __forceinline__ void align_to(int group_bit)
    {
        shift = Shape::STEPS_ARE_BYTES ? 0 : opaque(group_bit & 7);
        selector = opaque(0x0123u + 0x1111u * (group_bit >> 3 & 3));
    }

    // Decodes the words of the part's first `n` products to bytes. Samples are in the top bits of bytes, with any bits
    // below them.
    __device__ __forceinline__ void decode(Operands<Shape>& bytes, const Words<Shape>& words, int n) const
    {
#pragma unroll
        for (int i = 0; i < 2 * Shape::GROUPS_PER_PART; ++i) {
            const int g = i / 2, row = i % 2;
            if (g >= n)
                continue;
            unsigned whole[SHIFTED_WORDS], group[ALIGNED_WORDS];  // from the group's first byte; from its first bit
#pragma unroll
            for (int w = 0; w < SHIFTED_WORDS; ++w)
                whole[w] = __byte_perm(
                    words[row][g][w], words[row][g][w + 1 < Shape::WORDS_PER_GROUP ? w + 1 : w], selector);
#pragma unroll
            for (int w = 0; w < ALIGNED_WORDS; ++w)
                group[w] = Shape::STEPS_ARE_BYTES
                    ? whole[w]
                    : __funnelshift_l(w + 1 < SHIFTED_WORDS ? whole[w + 1] : 0, whole[w], shift);
            if constexpr (SAMPLE_BITS == 2) {
                decode_two_bits(bytes + g, row, group[0]);
            } else {
                decode_register<0>(bytes + g * Shape::OPERANDS_PER_SAMPLE, row, group);
                decode_register<1>(bytes + g * Shape::OPERANDS_PER_SAMPLE, row, group);
            }
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
    // Decodes both registers of a product, for one row.
    __device__ __forceinline__ static void decode_two_bits(unsigned (*bytes)[4], int row, unsigned group)
    {
        const unsigned twice = __byte_perm(group, 0, 0x3232);
        bytes[0][row] = ((twice << 4 ^ twice) & 0xffff0000u) ^ twice;
        bytes[0][2 + row] = bytes[0][row] << 2;
    }

    // Decodes register R of a product, for one row: samples 4 R to 4 R + 3 of a group.
    template <int R>
    __device__ __forceinline__ static void decode_register(
        unsigned (*bytes)[4], int row, const unsigned (&group)[ALIGNED_WORDS])
    {
        const unsigned a = field<4 * R>(group), b = field<4 * R + 1>(group);
        const unsigned c = field<4 * R + 2>(group), d = field<4 * R + 3>(group);
        // Each has two second bytes in its low half and two first bytes in its high half.
        const unsigned low = __byte_perm(a, b, 0x7362), high = __byte_perm(c, d, 0x7362);
        bytes[0][2 * R + row] = __byte_perm(low, high, 0x7632);
        if constexpr (Shape::OPERANDS_PER_SAMPLE > 1)
            bytes[1][2 * R + row] = __byte_perm(low, high, 0x5410);
    }

    // Returns sample I of a group in the top bits of a word, with any bits below it.
    template <int I>
    __device__ __forceinline__ static unsigned field(const unsigned (&group)[ALIGNED_WORDS])
    {
        constexpr int at = I * SAMPLE_BITS % 32, word = I * SAMPLE_BITS / 32;
        if constexpr (at + SAMPLE_BITS > 32)
            return __funnelshift_l(group[word + 1], group[word], at);
        else
            return group[word] << at;
    }
};
