// DFTs of 2 to 64 points in a thread's registers.
// Needs     nothing
// Provides  reversed; transform; transform_twiddled
__host__ __device__ constexpr int log_2(int n)
{
    return (n >= 2) + (n >= 4) + (n >= 8) + (n >= 16) + (n >= 32) + (n >= 64);
}

// Returns the place of point i of R in bit-reversed order. It has no loop, which a compiler might keep.
template <int R>
__host__ __device__ constexpr int reversed(int i)
{
    return ((i & 1) << 5 | (i & 2) << 3 | (i & 4) << 1 | (i & 8) >> 1 | (i & 16) >> 3 | (i & 32) >> 5)
        >> (6 - log_2(R));
}

// Returns cos(2 pi i / 64), i <= 16. It is not recursive, since a compiler would leave a recursion as a call.
__host__ __device__ constexpr float quarter(int i)
{
    return i == 0 ? 1.0f
{% for i in range(1, 16) %}
         : i == {{ i }} ? {{ cosines[i] }}
{% endfor %}
         : 0.0f;
}

// Return cos(2 pi i / 64) and sin(2 pi i / 64), i <= 32.
__host__ __device__ constexpr float cosine(int i) { return i <= 16 ? quarter(i) : -quarter(32 - i); }
__host__ __device__ constexpr float sine(int i) { return i <= 16 ? quarter(16 - i) : quarter(i - 16); }

// Replaces (e, o) with (e + w o, e - w o), in six multiply-adds.
__device__ __forceinline__ void butterfly(float2& e, float2& o, float wr, float wi)
{
    const float x = __fmaf_rn(-wi, o.y, __fmaf_rn(wr, o.x, e.x));
    const float y = __fmaf_rn(wi, o.x, __fmaf_rn(wr, o.y, e.y));
    o = make_float2(__fmaf_rn(2.0f, e.x, -x), __fmaf_rn(2.0f, e.y, -y));
    e = make_float2(x, y);
}

// Do the same for w = 1 and for w = -i.
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

// Replaces y [R], in bit-reversed order, with its DFT in natural order.
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

// Does the same for y[j] omega^j, beginning with the pass whose butterflies are M apart. twiddles(i stride), i < R / 2,
// returns entry i of omega's table (kernel_tables.cuh). M is a template parameter because a loop over it is not always
// unrolled, and then w would lie in local memory.
template <int R, int M = 1, class Twiddles>
__device__ __forceinline__ void transform_twiddled(float2* y, const Twiddles& twiddles, int stride)
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
        else  // a quarter of a cycle further
            butterfly(y[at], y[at + M], w[j - N].y, -w[j - N].x);
    }
    if constexpr (2 * M < R)
        transform_twiddled<R, 2 * M>(y, twiddles, stride);
}
