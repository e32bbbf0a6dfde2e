// Decode, to bytes, sample by sample: each is shifted to the top of a word of its own.
// Needs     Shape; lib/opaque.cuh (opaque), lib/vector.cuh (ceil_div), part.cuh (Words, Operands)
// Provides  DecodeFields: as DecodeBytes of decode_bytes.cuh, for steps that start at any bit, and for parts of any
//           number of products
// A word's top byte is the sample's first one; of samples of more than 8 bits the second one, unsigned, has the rest in
// its own top bits. So samples are multiplied by 2^(8 OPERANDS_PER_SAMPLE - SAMPLE_BITS).
// Any sample of a step may meet any row of the weights: lane l1 l0 of a row takes group l1 l0 of each four.
//     group              8 consecutive samples: whole bytes, and what a lane has of a product, four to a register
// (Where samples that start at the same bit of a byte share a register, a group is 16 of 2, 6, 10 or 14 bits, for two
// products, and 32 of odd ones, for four.)
// A group of 2 bits is two bytes, which fill a register twice, once moved by half a byte: that has four of its samples
// on top of bytes, and moved by one more sample it has the others.
template <class Shape>
struct DecodeFields {
    static constexpr int ALIGNED_WORDS = ceil_div(SAMPLE_BITS, 4);
    // A group is loaded from the byte on in which it starts.
    static constexpr int SHIFTED_WORDS = ceil_div(Shape::BITS_PER_GROUP + (Shape::STEPS_ARE_BYTES ? 0 : 7), 32);
    static_assert(Shape::SAMPLES_PER_GROUP == 8 && Shape::MMAS_PER_GROUP == 1);
    static_assert(Shape::GROUPS_PER_PART == Shape::MMAS_PER_PART);

    int bit;  // of the lane's first group, in its row of a stage
    int shift;  // by which groups start behind a whole byte, where steps do
    unsigned selector;  // of the four bytes of a word in two, the first one on top
    unsigned top_bits[Shape::OPERANDS_PER_SAMPLE];  // those of each byte that are its own

    // `rest`: where in its first 16 bytes a row starts.
    __device__ __forceinline__ explicit DecodeFields(int rest) : bit(rest * 8 + threadIdx.x % 4 * Shape::BITS_PER_GROUP)
    {
#pragma unroll
        for (int i = 0; i < Shape::OPERANDS_PER_SAMPLE; ++i) {
            const int n_bits = SAMPLE_BITS - 8 * i < 8 ? SAMPLE_BITS - 8 * i : 8;
            top_bits[i] = opaque((0xff00u >> n_bits & 0xff) * 0x01010101u);
        }
        align_to(bit);
    }

    // Returns by how many samples the block's runs start earlier: none, groups may start anywhere.
    __device__ __forceinline__ static int skew_of(long long)
    {
        return 0;
    }

    // Returns the sample of a product's row 0 (of 0 to 3: a lane), register `r` and byte `b` of it (0: the low one);
    // those of the other rows follow SAMPLES_PER_GROUP samples apart.
    __host__ __device__ static constexpr int sample_of(unsigned product, int r, int b)
    {
        const int in_group = SAMPLE_BITS == 2 ? 4 * (1 - b % 2) + b / 2 * 2 + r : r * 4 + b;
        return product * (4 * Shape::SAMPLES_PER_GROUP) + in_group;
    }

    // Gets ready for groups that start at this bit of their row.
    __device__ __forceinline__ void align_to(int group_bit)
    {
        shift = Shape::STEPS_ARE_BYTES ? 0 : opaque(group_bit & 7);
        selector = opaque(0x0123u + 0x1111u * (group_bit >> 3 & 3));
    }

    // Makes bytes of the words of the part's first `n` products: samples in the top bits, whatever is below them.
    __device__ __forceinline__ void decode(Operands<Shape>& bytes, const Words<Shape>& words, int n) const
    {
#pragma unroll
        for (int i = 0; i < 2 * Shape::GROUPS_PER_PART; ++i) {
            const int g = i / 2, row = i % 2;
            if (g >= n)
                continue;
            unsigned whole[SHIFTED_WORDS], group[ALIGNED_WORDS];  // from a byte on; from the group's first bit on
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

    // Takes the bits below a byte's own away, by an instruction that the compiler cannot leave out or move; `number`:
    // of the operand among those of the part.
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
    // Both registers of a product, of one row.
    __device__ __forceinline__ static void decode_two_bits(unsigned (*bytes)[4], int row, unsigned group)
    {
        const unsigned twice = __byte_perm(group, 0, 0x3232);
        bytes[0][row] = ((twice << 4 ^ twice) & 0xffff0000u) ^ twice;
        bytes[0][2 + row] = bytes[0][row] << 2;
    }

    // Register R of a product, of one row: samples 4 R to 4 R + 3 of a group.
    template <int R>
    __device__ __forceinline__ static void decode_register(
        unsigned (*bytes)[4], int row, const unsigned (&group)[ALIGNED_WORDS])
    {
        const unsigned a = field<4 * R>(group), b = field<4 * R + 1>(group);
        const unsigned c = field<4 * R + 2>(group), d = field<4 * R + 3>(group);
        // Second bytes, and first ones.
        const unsigned low = __byte_perm(a, b, 0x7362), high = __byte_perm(c, d, 0x7362);
        bytes[0][2 * R + row] = __byte_perm(low, high, 0x7632);
        if constexpr (Shape::OPERANDS_PER_SAMPLE > 1)
            bytes[1][2 * R + row] = __byte_perm(low, high, 0x5410);
    }

    // Sample number I of a group, most significant bit first, in the top bits of a word, whatever is below it.
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
