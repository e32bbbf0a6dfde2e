// Operands: words of a unit become what tensor cores multiply. Plain words are (re, im), turned ones (im, -re): the sum
// of products of turned x with plain y is the imaginary part of x conj(y).
// Needs     nothing
// Provides  plain_words, turned_words

// Makes the plain words of one polarisation of the unit, for product number `product` of PRODUCTS_PER_UNIT.
__device__ __forceinline__ void plain_words(unsigned (&words)[2], const unsigned (&unit)[2], int product)
{
    if constexpr (BITS == 4) {  // 4 real parts, 4 imaginary ones
        words[0] = unit[product] << 4 & 0xf0f0f0f0;
        words[1] = unit[product] & 0xf0f0f0f0;
    } else {
        words[0] = unit[0], words[1] = unit[1];
    }
}

// Returns (im, -re).
__device__ __forceinline__ unsigned turn(unsigned word)
{
    if constexpr (BITS == 16)
        return __byte_perm(word, word, 0x1032) ^ 0x80000000;
    const unsigned negative = 0x01000100 - (word & 0x00ff00ff);  // no borrow; the low byte of a half is what counts
    return __byte_perm(word, negative, 0x6341);
}

__device__ __forceinline__ void turned_words(unsigned (&words)[2], const unsigned (&unit)[2], int product)
{
    if constexpr (BITS == 4) {
        words[0] = unit[product] & 0xf0f0f0f0;
        words[1] = (0x10101010 - (unit[product] & 0x0f0f0f0f)) << 4 & 0xf0f0f0f0;
    } else {
        words[0] = turn(unit[0]), words[1] = turn(unit[1]);
    }
}
