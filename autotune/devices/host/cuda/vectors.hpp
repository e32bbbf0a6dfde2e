// Vector types, in CUDA's sizes and alignments.
#pragma once

namespace cuda_user {
inline namespace {

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define CUDA_HOST_VECTOR_1_TO_3(T, name, align2)                                          \
    struct name##1 {                                                                      \
        T x;                                                                              \
    };                                                                                    \
    struct __attribute__((aligned(align2))) name##2 {                                     \
        T x, y;                                                                           \
    };                                                                                    \
    CUDA_HOST_INLINE constexpr name##1 make_##name##1(T x) { return {x}; }                \
    CUDA_HOST_INLINE constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }        \
    CUDA_HOST_INLINE constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }

#define CUDA_HOST_VECTOR(T, name, align2, align4)                                                 \
    struct name##3 {                                                                              \
        T x, y, z;                                                                                \
    };                                                                                            \
    CUDA_HOST_VECTOR_1_TO_3(T, name, align2)                                                      \
    struct __attribute__((aligned(align4))) name##4 {                                             \
        T x, y, z, w;                                                                             \
    };                                                                                            \
    CUDA_HOST_INLINE constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

CUDA_HOST_VECTOR(signed char, char, 2, 4)
CUDA_HOST_VECTOR(unsigned char, uchar, 2, 4)
CUDA_HOST_VECTOR(short, short, 4, 8)
CUDA_HOST_VECTOR(unsigned short, ushort, 4, 8)
CUDA_HOST_VECTOR(int, int, 8, 16)
CUDA_HOST_VECTOR(float, float, 8, 16)
CUDA_HOST_VECTOR(long, long, 16, 16)
CUDA_HOST_VECTOR(unsigned long, ulong, 16, 16)
CUDA_HOST_VECTOR(long long, longlong, 16, 16)
CUDA_HOST_VECTOR(unsigned long long, ulonglong, 16, 16)
CUDA_HOST_VECTOR(double, double, 16, 16)
CUDA_HOST_VECTOR_1_TO_3(unsigned, uint, 8)  // abi.hpp has uint3
struct __attribute__((aligned(16))) uint4 {
    unsigned x, y, z, w;
};
CUDA_HOST_INLINE constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

static_assert(sizeof(float3) == 12 && alignof(float3) == 4 && alignof(float4) == 16, "float vectors");
static_assert(alignof(char4) == 4 && alignof(long2) == 16 && alignof(uint2) == 8, "integer vectors");

}  // namespace
}  // namespace cuda_user
