// A part of a step: the packed words that a lane loads of it, and the operands that they become.
// Needs     S: Shape
// Provides  Words, Operands; load_words, from a stage to registers
template <class S>
using Words = unsigned[2][S::GROUPS_PER_PART][S::WORDS_PER_GROUP];  // [row of the lane's two]

template <class S>
using Operands = unsigned[S::MMAS_PER_PART * S::OPERANDS_PER_SAMPLE][4];  // [product][register]

// Loads the words of the part's first `n` products. `from`: the lane's first one of its first row.
template <class S>
__device__ __forceinline__ void load_words(Words<S>& words, const unsigned* from, int n = S::MMAS_PER_PART)
{
#pragma unroll
    for (int i = 0; i < 2 * S::GROUPS_PER_PART * S::WORDS_PER_GROUP; ++i) {
        const int r = i / (S::GROUPS_PER_PART * S::WORDS_PER_GROUP);
        const int g = i / S::WORDS_PER_GROUP % S::GROUPS_PER_PART, w = i % S::WORDS_PER_GROUP;
        if (g * S::MMAS_PER_PART < n * S::GROUPS_PER_PART)
            words[r][g][w] = from[r * (8 * S::STAGE_PITCH * 4) + g * S::GROUP_STRIDE + w];
    }
}
