{# sum: type of the sums, "s32" or "f32"; register: type of their registers, "r" or "f"; element: type of the elements,
   "s8" or "f16"; widths: values of N; starts: if true, also make products that begin a sum instead of adding to it;
   row_element: a second type for the rows ("u8" beside "s8"), for which multiply_<row_element> is made. #}
// Products by the four warps of a warpgroup, for sm_90a only. A is 64 rows of 32 bytes in registers, in the layout of
// lib/mma.cuh with 16 rows per warp; B is N columns of 32 bytes in shared memory; a product adds to sums in registers.
// Products run while the threads go on. The threads must not touch the registers of A and of the sums before they have
// waited. The host multiplies at once. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
// Needs     Sum, the type of the sums
// Provides  multiply, multiply_u8, begin_products, close_products, wait_for_products, rows_of_64_bytes
{% for own in ((element, row_element) if row_element | default("") else (element,)) %}
{% set name = "multiply" if own == element else "multiply_" ~ own %}
{% if not loop.first %}

{% endif %}
template <int N, bool ADDS = true>
__device__ __forceinline__ void {{ name }}(Sum (&sums)[N / 2], const unsigned (&a)[4], unsigned long long b);
{% for n in widths %}
{% for adds in ((true, false) if starts | default(false) else (true,)) %}
{% set sum_operand = ("+" if adds else "=&") ~ register %}

template <>
__device__ __forceinline__ void {{ name }}<{{ n }}{{ "" if adds else ", false" }}>(
    Sum (&sums)[{{ n // 2 }}], const unsigned (&a)[4], unsigned long long b)
{
#ifdef AUTOTUNE_HOST
{% if not adds %}
    for (Sum& sum : sums)
        sum = 0;
{% endif %}
    cuda_host_wgmma_{{ own }}<{{ n }}>(sums, a, b);
#else
    asm volatile("{ .reg .pred add;\n"
                 "setp.eq.b32 add, 0, {{ 0 if adds else 1 }};\n"
                 "wgmma.mma_async.sync.aligned.m64n{{ n }}k{{ 32 if element == "s8" else 16 }}"
                 ".{{ sum }}.{{ own }}.{{ element }} "
                 "{ %{{ range(n // 2) | join(", %") }}}, "
                 "{ %{{ range(n // 2, n // 2 + 4) | join(", %") }}}, %{{ n // 2 + 4 }}, "
                 "add{{ "" if element == "s8" else ", 1, 1, 0" }}; }"
                 : "{{ sum_operand }}"(sums[{{ range(n // 2) | join(']), "' ~ sum_operand ~ '"(sums[') }}])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#endif
}
{% endfor %}
{% endfor %}
{% endfor %}

// Call it before the first product, and before a product that uses registers to which threads have written.
__device__ __forceinline__ void begin_products()
{
#ifndef AUTOTUNE_HOST
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#endif
}

// Makes one group of the products since the last call.
__device__ __forceinline__ void close_products()
{
#ifndef AUTOTUNE_HOST
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
#endif
}

// Waits until at most N groups are under way.
template <int N>
__device__ __forceinline__ void wait_for_products()
{
#ifndef AUTOTUNE_HOST
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(N) : "memory");
#endif
}

// Returns the hardware's descriptor of an operand with rows of 64 bytes, whose pieces of 16 bytes are swizzled. Groups
// of 8 rows lie 512 bytes apart. `address` is that of the operand's 32 bytes in the first row.
__device__ __forceinline__ unsigned long long rows_of_64_bytes(unsigned address)
{
    constexpr unsigned long long SWIZZLE_64 = 2ull << 62, GROUP = 512ull / 16 << 32;
    constexpr unsigned UNUSED = 1 << 16;
    return (SWIZZLE_64 | GROUP) + ((address >> 4) + UNUSED);
}
