// Transforms in registers, and of a row by two passes of them.
__host__ __device__ constexpr int log_2(int n)
{
    return (n >= 2) + (n >= 4) + (n >= 8) + (n >= 16) + (n >= 32) + (n >= 64);
}

// The lowest `bits` of i in reverse. There is no loop, which a compiler might keep.
__host__ __device__ constexpr int reversed(int i, int bits)
{
    return ((i & 1) << 5 | (i & 2) << 3 | (i & 4) << 1 | (i & 8) >> 1 | (i & 16) >> 3 | (i & 32) >> 5) >> (6 - bits);
}

// cos(2 pi i / 64), i <= 16. Nothing here calls itself, which a compiler would leave as a call.
__host__ __device__ constexpr float quarter(int i)
{
    return i == 0 ? 1.0f
{% for i in range(1, 16) %}
         : i == {{ i }} ? {{ cosines[i] }}
{% endfor %}
         : 0.0f;
}

// cos(2 pi i / 64) and sin(2 pi i / 64), i <= 32
__host__ __device__ constexpr float cosine(int i) { return i <= 16 ? quarter(i) : -quarter(32 - i); }
__host__ __device__ constexpr float sine(int i) { return i <= 16 ? quarter(16 - i) : quarter(i - 16); }

// (e, o) becomes (e + w o, e - w o): six multiply-adds.
__device__ __forceinline__ void butterfly(float2& e, float2& o, float wr, float wi)
{
    const float x = __fmaf_rn(-wi, o.y, __fmaf_rn(wr, o.x, e.x));
    const float y = __fmaf_rn(wi, o.x, __fmaf_rn(wr, o.y, e.y));
    o = make_float2(__fmaf_rn(2.0f, e.x, -x), __fmaf_rn(2.0f, e.y, -y));
    e = make_float2(x, y);
}

// The same for w = 1, and for w = -i.
__device__ __forceinline__ void butterfly_one(float2& e, float2& o)
{
    const float2 a = e, b = o;
    e = make_float2(a.x + b.x, a.y + b.y);
    o = make_float2(a.x - b.x, a.y - b.y);
}

__device__ __forceinline__ void butterfly_minus_i(float2& e, float2& o)
{
    const float2 a = e, b = o;
    e = make_float2(a.x + b.y, a.y - b.x);
    o = make_float2(a.x - b.y, a.y + b.x);
}

// y in bit-reversed order becomes its DFT in natural order.
template <int R>
__device__ __forceinline__ void transform(float2* y)
{
#pragma unroll
    for (int lg = 0; lg < log_2(R); ++lg) {
        const int m = 1 << lg;
#pragma unroll
        for (int i = 0; i < R / 2; ++i) {
            const int j = i % m, at = i / m * 2 * m + j;
            if (j == 0)
                butterfly_one(y[at], y[at + m]);
            else if (2 * j == m)
                butterfly_minus_i(y[at], y[at + m]);
            else
                butterfly(y[at], y[at + m], cosine(j * (32 / m)), -sine(j * (32 / m)));
        }
    }
}

// The same of y[j] omega^j, from the pass whose butterflies are M apart on. twiddles(i stride), i < R / 2, belong to omega:
// what twiddle() says. M is a template's, because a loop over it is not always unrolled, and w then lies in local memory.
template <int R, int M = 1, class Twiddles>
__device__ __forceinline__ void transform_turned(float2* y, const Twiddles& twiddles, int stride)
{
    constexpr int N = M > 1 ? M / 2 : 1, FIRST = M > 1 ? M / 2 : 0;
    float2 w[N];
#pragma unroll
    for (int i = 0; i < N; ++i)
        w[i] = twiddles((FIRST + i) * stride);
#pragma unroll
    for (int i = 0; i < R / 2; ++i) {
        const int j = i % M, at = i / M * 2 * M + j;
        if (j < N)
            butterfly(y[at], y[at + M], w[j].x, w[j].y);
        else  // a quarter of a turn further
            butterfly(y[at], y[at + M], w[j - N].y, -w[j - N].x);
    }
    if constexpr (2 * M < R)
        transform_turned<R, 2 * M>(y, twiddles, stride);
}

// Bins 0 and N / 2 of real samples are no pair. What makes them one, for split() with c = 1, s = 0.
__device__ __forceinline__ void pair_up(float2& zero, float2& half)
{
    const float sum = zero.x + zero.y, p = sum + half.x, q = sum - half.x, u = half.y;
    zero = make_float2(0.5f * (p + u), 0.5f * (q + u));
    half = make_float2(0.5f * (p - u), 0.5f * (q - u));
}

// Transforms a row by RADIX_2 threads; load(lane, n) returns its point n2 = lane + n; the twiddles are
// those of both passes, as twiddle() orders them; those of the first one are 1 where a row is a whole spectrum. The bins are in
// order in `slice`, and where `has_zero`, of row 0 of real samples, bin N2 / 2 is in place N2.
// Element n2 = lane + RADIX_2 j; after the first pass q + RADIX_1 lane; bin q + RADIX_1 r.
template <class Load, class First, class Second>
__device__ __forceinline__ void transform_row(
    float2* slice, int lane, bool has_zero, Load load, First first_twiddle, Second second_twiddle)
{
    float2 y[RADIX_1];
#pragma unroll
    for (int j = 0; j < RADIX_1; ++j)
        y[reversed(j, log_2(RADIX_1))] = load(lane, RADIX_2 * j);
    if constexpr (N1 > 1)
        transform_turned<RADIX_1>(y, first_twiddle, 1);
    else
        transform<RADIX_1>(y);
    __syncwarp();  // all points are in registers
#pragma unroll
    for (int q = 0; q < RADIX_1; ++q)
        slice[q * (RADIX_2 + 1) + lane] = y[q];
    __syncwarp();  // the first pass is complete
#pragma unroll
    for (int first = 0; first < RADIX_1; first += RADIX_2) {
        const int q = first + lane;
#pragma unroll
        for (int l = 0; l < RADIX_2; ++l)
            y[first + reversed(l, log_2(RADIX_2))] = slice[q * (RADIX_2 + 1) + l];
        transform_turned<RADIX_2>(y + first, [&](int i) { return second_twiddle(q + i); }, RADIX_1);
    }
    __syncwarp();  // what the first pass left is in registers
    if (!COMPLEX && lane == 0 && has_zero) {
        pair_up(y[0], y[RADIX_2 / 2]);
        slice[N2] = y[RADIX_2 / 2];
    }
#pragma unroll
    for (int first = 0; first < RADIX_1; first += RADIX_2) {
#pragma unroll
        for (int r = 0; r < RADIX_2; ++r)
            slice[r * RADIX_1 + first + lane] = y[first + r];
    }
}
