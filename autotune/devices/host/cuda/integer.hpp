// Integer intrinsics, after the PTX definitions of the instructions they stand for.
#pragma once

namespace cuda_user {
inline namespace {

// The low 3 bits of nibble i of `selector` pick byte i of the result from the 8 bytes of b:a. (The instruction's
// fourth bit, which replicates the sign, is masked off by CUDA's intrinsic.)
CUDA_HOST_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const uint64_t bytes = uint64_t(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned nibble = selector >> (4 * i) & 7;
        result |= (unsigned(bytes >> (8 * nibble)) & 255) << (8 * i);
    }
    return result;
}

// shf: 32 bits of high:low, the shift taken modulo 32, or (c) clamped to 32.
CUDA_HOST_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return unsigned((uint64_t(high) << 32 | low) << (shift & 31) >> 32);
}
CUDA_HOST_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}
CUDA_HOST_INLINE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
CUDA_HOST_INLINE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

// dp4a, dp2a: a dot product of the parts, added to c modulo 2^32.
CUDA_HOST_INLINE int __dp4a(int a, int b, int c) {
    unsigned sum = unsigned(c);
    for (int i = 0; i < 4; i++) sum += unsigned(int8_t(a >> 8 * i) * int8_t(b >> 8 * i));
    return int(sum);
}
CUDA_HOST_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; i++) c += (a >> 8 * i & 255) * (b >> 8 * i & 255);
    return c;
}
CUDA_HOST_INLINE int __dp2a_lo(int a, int b, int c) {
    unsigned sum = unsigned(c);
    for (int i = 0; i < 2; i++) sum += unsigned(int16_t(a >> 16 * i) * int8_t(b >> 8 * i));
    return int(sum);
}
CUDA_HOST_INLINE int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }

CUDA_HOST_INLINE int __popc(unsigned v) { return __builtin_popcount(v); }
CUDA_HOST_INLINE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
CUDA_HOST_INLINE int __clz(int v) { return v ? __builtin_clz(unsigned(v)) : 32; }
CUDA_HOST_INLINE int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
CUDA_HOST_INLINE int __ffs(int v) { return __builtin_ffs(v); }
CUDA_HOST_INLINE int __ffsll(long long v) { return __builtin_ffsll(v); }
CUDA_HOST_INLINE unsigned __brev(unsigned v) {
    unsigned result = 0;
    for (int i = 0; i < 32; i++) result |= (v >> i & 1u) << (31 - i);
    return result;
}
CUDA_HOST_INLINE unsigned long long __brevll(unsigned long long v) {
    return (unsigned long long)__brev(unsigned(v)) << 32 | __brev(unsigned(v >> 32));
}

CUDA_HOST_INLINE int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
CUDA_HOST_INLINE unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
CUDA_HOST_INLINE long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
CUDA_HOST_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
CUDA_HOST_INLINE int __mul24(int a, int b) {
    const int a24 = int(unsigned(a) << 8) >> 8, b24 = int(unsigned(b) << 8) >> 8;
    return int(unsigned(a24) * unsigned(b24));
}

CUDA_HOST_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
CUDA_HOST_INLINE unsigned __sad(int a, int b, unsigned c) { return unsigned(a < b ? int64_t(b) - a : int64_t(a) - b) + c; }
CUDA_HOST_INLINE unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a < b ? b - a : a - b) + c; }
CUDA_HOST_INLINE int __hadd(int a, int b) { return int((int64_t(a) + b) >> 1); }
CUDA_HOST_INLINE int __rhadd(int a, int b) { return int((int64_t(a) + b + 1) >> 1); }
CUDA_HOST_INLINE unsigned __uhadd(unsigned a, unsigned b) { return unsigned((uint64_t(a) + b) >> 1); }
CUDA_HOST_INLINE unsigned __urhadd(unsigned a, unsigned b) { return unsigned((uint64_t(a) + b + 1) >> 1); }

// Four bytes or two halves of a word at once.
#define CUDA_HOST_LANES(name, Part, expression)                                \
    CUDA_HOST_INLINE unsigned name(unsigned a, unsigned b) {                   \
        unsigned result = 0;                                                   \
        for (unsigned i = 0; i < 4 / sizeof(Part); i++) {                      \
            const unsigned shift = 8 * sizeof(Part) * i;                       \
            const int x = Part(a >> shift), y = Part(b >> shift);              \
            [[maybe_unused]] const int most = std::numeric_limits<Part>::max(), least = std::numeric_limits<Part>::min(); \
            result |= (unsigned(expression) & (unsigned)((1ull << 8 * sizeof(Part)) - 1)) << shift; \
        }                                                                      \
        return result;                                                         \
    }
#define CUDA_HOST_UNSIGNED_LANES(name, expression) \
    CUDA_HOST_LANES(name##2, uint16_t, expression) CUDA_HOST_LANES(name##4, uint8_t, expression)
#define CUDA_HOST_SIGNED_LANES(name, expression) \
    CUDA_HOST_LANES(name##2, int16_t, expression) CUDA_HOST_LANES(name##4, int8_t, expression)
#define CUDA_HOST_COMPARED_LANES(name, op)                      \
    CUDA_HOST_UNSIGNED_LANES(__vcmp##name##u, x op y ? -1 : 0)  \
    CUDA_HOST_UNSIGNED_LANES(__vset##name##u, x op y ? 1 : 0)   \
    CUDA_HOST_SIGNED_LANES(__vcmp##name##s, x op y ? -1 : 0)    \
    CUDA_HOST_SIGNED_LANES(__vset##name##s, x op y ? 1 : 0)
CUDA_HOST_COMPARED_LANES(ge, >=)
CUDA_HOST_COMPARED_LANES(gt, >)
CUDA_HOST_COMPARED_LANES(le, <=)
CUDA_HOST_COMPARED_LANES(lt, <)
CUDA_HOST_UNSIGNED_LANES(__vcmpeq, x == y ? -1 : 0)
CUDA_HOST_UNSIGNED_LANES(__vcmpne, x != y ? -1 : 0)
CUDA_HOST_UNSIGNED_LANES(__vseteq, x == y ? 1 : 0)
CUDA_HOST_UNSIGNED_LANES(__vsetne, x != y ? 1 : 0)
CUDA_HOST_UNSIGNED_LANES(__vadd, x + y)
CUDA_HOST_UNSIGNED_LANES(__vsub, x - y)
CUDA_HOST_UNSIGNED_LANES(__vaddus, x + y > most ? most : x + y)
CUDA_HOST_UNSIGNED_LANES(__vsubus, x < y ? 0 : x - y)
CUDA_HOST_SIGNED_LANES(__vaddss, x + y > most ? most : x + y < least ? least : x + y)
CUDA_HOST_SIGNED_LANES(__vsubss, x - y > most ? most : x - y < least ? least : x - y)
CUDA_HOST_UNSIGNED_LANES(__vabsdiffu, x < y ? y - x : x - y)
CUDA_HOST_SIGNED_LANES(__vabsdiffs, x < y ? y - x : x - y)
CUDA_HOST_UNSIGNED_LANES(__vmaxu, x < y ? y : x)
CUDA_HOST_UNSIGNED_LANES(__vminu, x < y ? x : y)
CUDA_HOST_SIGNED_LANES(__vmaxs, x < y ? y : x)
CUDA_HOST_SIGNED_LANES(__vmins, x < y ? x : y)
CUDA_HOST_UNSIGNED_LANES(__vhaddu, (x + y) >> 1)
CUDA_HOST_UNSIGNED_LANES(__vavgu, (x + y + 1) >> 1)
#define CUDA_HOST_ONE_WORD(n)                                                                     \
    CUDA_HOST_INLINE unsigned __vneg##n(unsigned a) { return __vsub##n(0, a); }                   \
    CUDA_HOST_INLINE unsigned __vnegss##n(unsigned a) { return __vsubss##n(0, a); }               \
    CUDA_HOST_INLINE unsigned __vabs##n(unsigned a) { return __vabsdiffs##n(a, 0); }              \
    CUDA_HOST_INLINE unsigned __vabsss##n(unsigned a) { return __vmaxs##n(a, __vnegss##n(a)); }   \
    CUDA_HOST_INLINE unsigned __vsads##n(unsigned a, unsigned b) { return sum_of_lanes<n>(__vabsdiffs##n(a, b)); } \
    CUDA_HOST_INLINE unsigned __vsadu##n(unsigned a, unsigned b) { return sum_of_lanes<n>(__vabsdiffu##n(a, b)); }
template <unsigned n> CUDA_HOST_INLINE unsigned sum_of_lanes(unsigned a) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) sum += a >> 32 / n * i & ((1u << 32 / n) - 1);
    return sum;
}
CUDA_HOST_ONE_WORD(2)
CUDA_HOST_ONE_WORD(4)

#define CUDA_HOST_MIN_MAX(T)                                                 \
    CUDA_HOST_INLINE constexpr T min(T a, T b) { return b < a ? b : a; }     \
    CUDA_HOST_INLINE constexpr T max(T a, T b) { return a < b ? b : a; }
CUDA_HOST_MIN_MAX(int)
CUDA_HOST_MIN_MAX(unsigned)
CUDA_HOST_MIN_MAX(long)
CUDA_HOST_MIN_MAX(unsigned long)
CUDA_HOST_MIN_MAX(long long)
CUDA_HOST_MIN_MAX(unsigned long long)
// Of two types, the unsigned or the longer one counts.
#define CUDA_HOST_MIXED_MIN_MAX(A, B, T)                                                     \
    CUDA_HOST_INLINE constexpr T min(A a, B b) { return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a); }         \
    CUDA_HOST_INLINE constexpr T min(B a, A b) { return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a); }         \
    CUDA_HOST_INLINE constexpr T max(A a, B b) { return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a); }         \
    CUDA_HOST_INLINE constexpr T max(B a, A b) { return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a); }
CUDA_HOST_MIXED_MIN_MAX(int, unsigned, unsigned)
CUDA_HOST_MIXED_MIN_MAX(long, unsigned long, unsigned long)
CUDA_HOST_MIXED_MIN_MAX(long long, unsigned long long, unsigned long long)
CUDA_HOST_INLINE double min(float a, double b) { return fmin(double(a), b); }
CUDA_HOST_INLINE double min(double a, float b) { return fmin(a, double(b)); }
CUDA_HOST_INLINE double max(float a, double b) { return fmax(double(a), b); }
CUDA_HOST_INLINE double max(double a, float b) { return fmax(a, double(b)); }
CUDA_HOST_INLINE unsigned umin(unsigned a, unsigned b) { return min(a, b); }
CUDA_HOST_INLINE unsigned umax(unsigned a, unsigned b) { return max(a, b); }
CUDA_HOST_INLINE float min(float a, float b) { return fminf(a, b); }
CUDA_HOST_INLINE float max(float a, float b) { return fmaxf(a, b); }
CUDA_HOST_INLINE double min(double a, double b) { return fmin(a, b); }
CUDA_HOST_INLINE double max(double a, double b) { return fmax(a, b); }

}  // namespace
}  // namespace cuda_user
