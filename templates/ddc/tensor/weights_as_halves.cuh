// Weights as two halves, each of 11 bits: h = high + low 2^-11. They are scaled by a power of two, so that the largest
// is in [2^14, 2^15). Then no half overflows, and a weight that is 2^28 times smaller is still a normal number.
// Needs     Shape; Decode: DecodeHalves, whose sample_of says which sample meets which row
// Provides  WeightHalves: split, and the constants of its scale, for weights_mixed.cuh
//           take, words_of: a lane's weights of a block, as mma.sync takes them, for weights_ring.cuh and
//           weights_fragments.cuh
#include <cuda_fp16.h>

template <class Shape, class Decode>
struct WeightHalves {
    typedef ushort4 Parts;  // (re high, re low, im high, im low)

    static constexpr int LARGEST = 14;  // exponent of the largest weight after scaling
    static constexpr unsigned ALMOST = 0;  // last bits: weights so close below 2^n count as 2^n
    // The biased exponent of 2^-100. If the largest weight were smaller, the scale would overflow.
    static constexpr unsigned LEAST_EXPONENT = 27;
    static constexpr int SAMPLE_SCALE = 0;  // exponent of the factor by which samples are multiplied
    static constexpr int OCTETS_PER_UNIT = 1;  // octets of columns, which have whole outputs
    static constexpr bool ALTERNATES_REGISTERS = false;  // see words_of
    static constexpr int COLUMNS_EARLIER = 0;  // columns by which a sample's first operand starts earlier

    __device__ __forceinline__ static Parts split(float re, float im)
    {
        const ushort2 r = halves_of(re), i = halves_of(im);
        return make_ushort4(r.x, r.y, i.x, i.y);
    }

    struct Taken {
        unsigned short halves[2][2];  // the lane's weights of a product: both registers that mma.sync takes
    };

    // Loads the weights of a block for product `product` of a step and the lane's column of octet `unit`.
    __device__ __forceinline__ static Taken take(
        const Parts* weights, int block, unsigned product, int unit, int lane, int skew)
    {
        const int column = lane / 4, own = lane % 4 * Shape::SAMPLES_PER_GROUP;
        const int back = own - column / 4 * DECIMATION - skew;
        const int first = block * Shape::SAMPLES_PER_STEP - unit * (2 * DECIMATION);
        const unsigned short* const parts = &weights->x + column % 4;
        Taken taken;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int of_row_0 = Decode::sample_of(product, i / 2, i % 2);
            const bool is_own =
                Shape::MMAS_PER_STEP * Shape::SAMPLES_PER_MMA == Shape::SAMPLES_PER_STEP
                || own + of_row_0 < Shape::SAMPLES_PER_STEP;
            const unsigned place =
                is_own ? Shape::place_of_any(back + (first + of_row_0)) : Shape::place_of_weight(TAPS);
            taken.halves[i / 2][i % 2] = parts[place * 4];
        }
        return taken;
    }

    // Packs the halves into two registers.
    __device__ __forceinline__ static void words_of(unsigned (&words)[OCTETS_PER_UNIT][2], const Taken& taken, int)
    {
#pragma unroll
        for (int r = 0; r < 2; ++r)
            words[0][r] = taken.halves[r][0] | taken.halves[r][1] << 16;
    }

private:
    __device__ __forceinline__ static ushort2 halves_of(float x)
    {
        const __half high = __float2half_rn(x);
        const __half low = __float2half_rn((x - __half2float(high)) * 2048.0f);
        return make_ushort2(__half_as_ushort(high), __half_as_ushort(low));
    }
};
