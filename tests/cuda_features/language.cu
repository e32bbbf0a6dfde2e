// C++ in device code. Each kernel: 2 blocks of 64 threads; x has 128 floats, and so has y.

template <class T, int N>
__device__ T scaled(T value) {
    return value * N;
}
extern "C" __global__ void templates(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = scaled<float, 3>(x[i]);
}

template <class Function>
__device__ float applied(Function function, float value) {
    return function(value);
}
extern "C" __global__ void lambdas(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float factor = 2.0f;
    y[i] = applied([=](float v) { return factor * v + 1.0f; }, x[i]);
}

template <bool doubled>
__device__ float chosen(float v) {
    if constexpr (doubled)
        return 2.0f * v;
    else
        return v;
}
extern "C" __global__ void constexpr_if(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = chosen<true>(x[i]) + chosen<false>(x[i]);
}

struct Parts {
    float whole, rest;
};
__device__ Parts parts_of(float v) { return {floorf(v), v - floorf(v)}; }
extern "C" __global__ void structured_bindings(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const auto [whole, rest] = parts_of(x[i]);
    y[i] = whole - rest;
}

template <class... Numbers>
__device__ float summed(Numbers... numbers) {
    return (numbers + ...);
}
extern "C" __global__ void fold_expressions(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = summed(x[i], 2.0f * x[i], 1);
}

__device__ float largest(float v) { return v; }
template <class... Rest>
__device__ float largest(float first, Rest... rest) {
    const float other = largest(rest...);
    return first > other ? first : other;
}
extern "C" __global__ void variadic_templates(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = largest(x[i], -x[i], 0.5f);
}

class Line {
    float slope, start;

public:
    __device__ Line(float slope, float start) : slope(slope), start(start) {}
    __device__ float operator()(float v) const { return slope * v + start; }
};
extern "C" __global__ void function_objects(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = Line(2.0f, 1.0f)(x[i]);
}

struct Shape {
    __device__ virtual float area(float v) const { return v; }
};
struct Square : Shape {
    __device__ float area(float v) const override { return v * v; }
};
extern "C" __global__ void virtual_functions(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Shape any;
    Square square;
    const Shape* const shape = i % 2 ? &any : &square;
    y[i] = shape->area(x[i]);
}

union Word {
    float number;
    unsigned bits;
};
extern "C" __global__ void unions(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Word word;
    word.number = x[i];
    word.bits ^= 0x80000000u;
    y[i] = word.number;
}

struct Fields {
    unsigned low : 4, high : 4;
};
extern "C" __global__ void bit_fields(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Fields fields;
    fields.low = unsigned(i);
    fields.high = unsigned(i) >> 4;
    y[i] = float(fields.high * 16 + fields.low);
}

struct alignas(16) Aligned {
    float v[3];
};
extern "C" __global__ void aligned_types(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ alignas(16) Aligned all[64];
    all[threadIdx.x].v[2] = x[i];
    y[i] = all[threadIdx.x].v[2] * float(sizeof(Aligned) * alignof(Aligned));
}

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void recursion(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = float(fibonacci(i % 8));
}

__device__ float plus_one(float v) { return v + 1.0f; }
__device__ float times_two(float v) { return v * 2.0f; }
typedef float (*Step)(float);
__device__ Step steps[2] = {plus_one, times_two};
extern "C" __global__ void function_pointers(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = steps[i % 2](x[i]);
}

__device__ unsigned next_ticket(unsigned step) {
    static unsigned tickets;
    return atomicAdd(&tickets, step);
}
extern "C" __global__ void static_variables(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) next_ticket(0);
    y[i] = x[i] + float(next_ticket(0));
}

namespace inner {
enum class Kind { odd, even };
__device__ float of(float v, Kind kind) { return kind == Kind::even ? v : -v; }
}  // namespace inner
extern "C" __global__ void namespaces_and_enums(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    using namespace inner;
    y[i] = of(x[i], i % 2 ? Kind::odd : Kind::even);
}

struct Counted {
    float v;
    __device__ friend Counted operator+(Counted a, Counted b) { return {a.v + b.v}; }
};
__device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
template <class T>
__device__ T twice(T v) {
    return v + v;
}
extern "C" __global__ void operators(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = twice(Counted{x[i]}).v + twice(make_float2(x[i], 1.0f)).y;
}

#ifndef __CUDACC__  // as helper_math.h of CUDA's samples
inline float rsqrtf(float v) { return 1.0f / sqrtf(v); }
inline int max(int a, int b) { return a > b ? a : b; }
#endif
__device__ float2 make_float2(float v) { return make_float2(v, v); }
__device__ float2 rsqrtf(float2 v) { return make_float2(rsqrtf(v.x), rsqrtf(v.y)); }
__device__ float2 fminf(float2 a, float2 b) { return make_float2(fminf(a.x, b.x), fminf(a.y, b.y)); }
__device__ float2 max(float2 a, float2 b) { return make_float2(max(a.x, b.x), max(a.y, b.y)); }
extern "C" __global__ void overloads_of_cudas(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float2 root = rsqrtf(make_float2(4.0f));
    y[i] = root.x * max(fminf(make_float2(x[i]), make_float2(0.5f)), make_float2(0.0f)).y;
}

__device__ float called_alike(float v) { return v + 1.0f; }
extern "C" __global__ void called_alike(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = called_alike(x[i]);
}

extern "C" __global__ void __launch_bounds__(64, 2) launch_bounds(const float* __restrict__ x, float* __restrict__ y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
#pragma unroll 4
    for (int k = 0; k < 8; k++) sum += x[i];
    y[i] = sum;
}

extern "C" __global__ void assumptions(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __builtin_assume(i >= 0);
    const float* const aligned = static_cast<const float*>(__builtin_assume_aligned(x, 16));
    y[i] = __builtin_expect(i > 3, 1) ? aligned[i] : -aligned[i];
}
