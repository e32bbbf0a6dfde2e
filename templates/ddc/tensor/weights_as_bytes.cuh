// Weights as integers of 24 bits, which are three signed bytes: h = byte 0 + byte 1 2^8 + byte 2 2^16. They are scaled
// by a power of two, so that the largest is in [2^22, 2^23). The upper end is a little lower, since a carry from bytes
// 0 and 1 must not overflow byte 2 (ALMOST). Sums of such products are exact.
// Needs     Shape; Decode: DecodeBytes or DecodeFields, whose sample_of says which sample meets which row
// Provides  WeightBytes: the names of WeightHalves in weights_as_halves.cuh, and of a tile's columns BYTES_PER_WEIGHT
//           and COLUMNS_PER_BYTE
// Columns of a tile: bytes 0 to BYTES_PER_WEIGHT - 1 of the weights, each for both parts of up to four outputs.
template <class Shape, class Decode>
struct WeightBytes {
    typedef uint2 Parts;  // (re, im), three bytes each: byte 0 in the lowest bits, and zeros in the highest 8 bits

    static constexpr int LARGEST = 22;  // exponent of the largest weight after scaling
    static constexpr unsigned ALMOST = 65795;  // last bits: weights so close below 2^n count as 2^n
    // The biased exponent of 2^-97. If the largest weight were smaller, the scale of sums would underflow.
    static constexpr unsigned LEAST_EXPONENT = 30;
    // Exponent of the factor by which samples are multiplied.
    static constexpr int SAMPLE_SCALE = 8 * Shape::OPERANDS_PER_SAMPLE - SAMPLE_BITS;
    static constexpr int BYTES_PER_WEIGHT = Shape::COLUMNS_PER_OUTPUT / 2;
    static constexpr int OCTETS_PER_UNIT = Shape::OUTPUTS_PER_STEP == 2 ? 2 : BYTES_PER_WEIGHT;  // whole outputs
    static constexpr int COLUMNS_PER_BYTE = Shape::OUTPUTS_PER_STEP == 2 ? 4 : 8;  // from one byte to the next
    static constexpr bool ALTERNATES_REGISTERS = true;  // see words_of
    // The upper byte of a sample is worth 2^8 times as much, so its columns start one byte earlier.
    static constexpr int COLUMNS_EARLIER = Shape::OPERANDS_PER_SAMPLE > 1 ? COLUMNS_PER_BYTE : 0;
    static_assert(TAPS < 1 << 15, "no sum of 383 x 128 for each tap overflows");

    __device__ __forceinline__ static Parts split(float re, float im)
    {
        return make_uint2(bytes_of(re), bytes_of(im));
    }

    struct Taken {
        Parts weights[4];  // the lane's weights of a product: one register of the fragment that mma.sync takes
    };

    // Loads the weights of a block for product `product` of a step and register `lane` / 4 % 2. They belong to the
    // outputs of octets [unit OCTETS_PER_UNIT, (unit + 1) OCTETS_PER_UNIT) of columns.
    __device__ __forceinline__ static Taken take(
        const Parts* weights, int block, unsigned product, int unit, int lane, int skew)
    {
        constexpr int OUTPUTS = COLUMNS_PER_BYTE / 2;  // in an octet
        constexpr int REGISTER_SAMPLES = Decode::sample_of(0, 1, 0) - Decode::sample_of(0, 0, 0);  // in all products
        const int own = lane % 4 * Shape::SAMPLES_PER_GROUP + (lane / 4 % 2 != 0 ? REGISTER_SAMPLES : 0);
        const int back = own - lane / 8 % OUTPUTS * DECIMATION - skew;
        const int first = block * Shape::SAMPLES_PER_STEP - unit * (4 * DECIMATION);
        Taken taken;
#pragma unroll
        for (int b = 0; b < 4; ++b) {
            const int of_row_0 = Decode::sample_of(product, 0, b);
            const bool is_own =
                Shape::MMAS_PER_STEP * Shape::SAMPLES_PER_MMA == Shape::SAMPLES_PER_STEP
                || own + of_row_0 < Shape::SAMPLES_PER_STEP;
            taken.weights[b] =
                weights[is_own ? Shape::place_of_any(back + (first + of_row_0)) : Shape::place_of_weight(TAPS)];
        }
        return taken;
    }

    // Makes the words of these octets for the two parts of one output. In the fragment, the first word of an octet
    // belongs to lane `lane` and the second to lane `lane` ^ 4.
    __device__ __forceinline__ static void words_of(unsigned (&words)[OCTETS_PER_UNIT][2], const Taken& taken, int lane)
    {
        const Parts* const all = taken.weights;
        const int byte = lane / 8 / (COLUMNS_PER_BYTE / 2);  // byte of the weights in the first octet
        const bool is_second = lane / 4 % 2 != 0;  // the second of the two registers
#pragma unroll
        for (int o = 0; o < OCTETS_PER_UNIT; ++o) {
            const unsigned selector = 0x40 + 0x11 * (o * (8 / COLUMNS_PER_BYTE) + byte);
            const unsigned re = __byte_perm(
                __byte_perm(all[0].x, all[1].x, selector), __byte_perm(all[2].x, all[3].x, selector), 0x5410);
            const unsigned im = __byte_perm(
                __byte_perm(all[0].y, all[1].y, selector), __byte_perm(all[2].y, all[3].y, selector), 0x5410);
            words[o][0] = is_second ? im : re;  // so that no two lanes store to one bank
            words[o][1] = is_second ? re : im;
        }
    }

private:
    __device__ __forceinline__ static unsigned bytes_of(float x)
    {
        return ((static_cast<unsigned>(__float2int_rn(x)) + 0x8080u) ^ 0x8080u) & 0xffffff;
    }
};
