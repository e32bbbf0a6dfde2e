static_assert(K_STEPS % GROUP_STEPS == 0, "products take whole groups");
// Products whose samples are in registers together: whole groups, too.
{% if overlaps %}
constexpr int PART_STEPS = MOST_PART;  // a step's last part may have fewer
constexpr int PARTS = ceil_div(K_STEPS, PART_STEPS);
static_assert(PART_STEPS % GROUP_STEPS == 0, "whole groups");
{% else %}
// The largest part of `n` products that divides it, up to `most`.
__host__ __device__ constexpr int part_of(int n, int most)
{
    int part = most < GROUP_STEPS ? GROUP_STEPS : most;
    while (part > GROUP_STEPS && (n % part != 0 || part % GROUP_STEPS != 0))
        --part;
    return part;
}
constexpr int PART_STEPS = part_of(K_STEPS, MOST_PART);
static_assert(K_STEPS % PART_STEPS == 0, "whole groups");
constexpr int PARTS = K_STEPS / PART_STEPS;
{% endif %}

// Products of part `part` of a step.
__host__ __device__ constexpr int products_of(int part)
{
    return part == PARTS - 1 ? K_STEPS - part * PART_STEPS : PART_STEPS;
}

// The compiler must not make a number again from others wherever it is used.
template <class Number>
__device__ __forceinline__ Number kept(Number number)
{
#ifndef AUTOTUNE_HOST
    asm volatile("" : "+r"(number));
#endif
    return number;
}
