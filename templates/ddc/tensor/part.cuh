// A part of a step: the packed words that a lane loads for it, and the operands that decoding makes of them.
// Needs     Shape
// Provides  Words, Operands; load_words, which loads from a stage into registers
template <class Shape>
using Words = unsigned[2][Shape::GROUPS_PER_PART][Shape::WORDS_PER_GROUP];  // [lane's row, 0 or 1]

template <class Shape>
using Operands = unsigned[Shape::MMAS_PER_PART * Shape::OPERANDS_PER_SAMPLE][4];  // [product][register]

// Loads the words of the part's first `n` products. `from` is the lane's first word in its first row.
template <class Shape>
__device__ __forceinline__ void load_words(Words<Shape>& words, const unsigned* from, int n = Shape::MMAS_PER_PART)
{
#pragma unroll
    for (int i = 0; i < 2 * Shape::GROUPS_PER_PART * Shape::WORDS_PER_GROUP; ++i) {
        const int r = i / (Shape::GROUPS_PER_PART * Shape::WORDS_PER_GROUP);
        const int g = i / Shape::WORDS_PER_GROUP % Shape::GROUPS_PER_PART, w = i % Shape::WORDS_PER_GROUP;
        if (g * Shape::MMAS_PER_PART < n * Shape::GROUPS_PER_PART)
            words[r][g][w] = from[r * (8 * Shape::STAGE_PITCH * 4) + g * Shape::GROUP_STRIDE + w];
    }
}
