// What threads do together: barriers, shuffles, votes, reductions, fences.
#pragma once

namespace cuda_host {

CUDA_HOST_INLINE int lane() { return int(cuda_host_environment.thread->linear % 32); }

// Integers that are smaller than int become int, as in a call of CUDA's functions, which have no others.
template <class T>
using Shuffled = typename std::conditional<std::is_integral<T>::value && sizeof(T) < sizeof(int), int, T>::type;

template <class T>
CUDA_HOST_INLINE Shuffled<T> shuffle(unsigned mask, T given, int source, Site site) {
    Shuffled<T> value = given;
    static_assert(sizeof(T) < 2 ? std::is_integral<T>::value : sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "CUDA has no shuffle of this type");
    static_assert(std::is_arithmetic<T>::value || sizeof(T) <= 4, "CUDA has no shuffle of this type");
    cuda_host_shuffle(mask, &value, sizeof value, source, site);
    return value;
}

// Likewise, of any type that can be copied byte by byte: cooperative groups shuffle structures, too.
template <class T>
CUDA_HOST_INLINE T shuffle_words(unsigned mask, T value, int source, Site site) {
    static_assert(sizeof(T) <= max_operand_bytes, "the host device has no shuffle of so large a type");
    cuda_host_shuffle(mask, &value, sizeof value, source, site);
    return value;
}

struct Match {
    unsigned same, present;  // lanes
};

template <class T>
CUDA_HOST_UNCHECKED void match_lanes(unsigned present, const Operands& in, Operands& out) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA matches values of 4 and 8 bytes");
    for (unsigned lane = 0; lane < 32; lane++) {
        Match match{0, present};
        for (unsigned other = 0; other < 32; other++)
            if ((present >> other & 1) && !::memcmp(in[lane], in[other], sizeof(T))) match.same |= 1u << other;
        ::memcpy(out[lane], &match, sizeof match);
    }
}

template <class T>
CUDA_HOST_INLINE Match match(const char* name, unsigned mask, T value, Site site) {
    Match result;
    cuda_host_collective(mask, name, &value, sizeof value, &result, sizeof result, match_lanes<T>, site);
    return result;
}

}  // namespace cuda_host

namespace cuda_user {
inline namespace {

CUDA_HOST_INLINE void __syncthreads(CUDA_HOST_SITE) { cuda_host_barrier(cuda_host::Vote::none, 0, site); }
CUDA_HOST_INLINE int __syncthreads_count(int predicate, CUDA_HOST_SITE) {
    return cuda_host_barrier(cuda_host::Vote::count, predicate, site);
}
CUDA_HOST_INLINE int __syncthreads_and(int predicate, CUDA_HOST_SITE) {
    return cuda_host_barrier(cuda_host::Vote::all, predicate, site);
}
CUDA_HOST_INLINE int __syncthreads_or(int predicate, CUDA_HOST_SITE) {
    return cuda_host_barrier(cuda_host::Vote::any, predicate, site);
}
// Barriers of some warps of a block, 1 to 15, as templates call them where PTX has bar.sync and bar.arrive.
CUDA_HOST_INLINE void cuda_host_bar_sync(int number, int n_threads, CUDA_HOST_SITE) {
    cuda_host_named_barrier(unsigned(number), unsigned(n_threads), 1, site);
}
CUDA_HOST_INLINE void cuda_host_bar_arrive(int number, int n_threads, CUDA_HOST_SITE) {
    cuda_host_named_barrier(unsigned(number), unsigned(n_threads), 0, site);
}
CUDA_HOST_INLINE void __syncwarp(unsigned mask = 0xffffffffu, CUDA_HOST_SITE) { cuda_host_syncwarp(mask, site); }

// One thread runs at a time, so only the compiler could reorder.
CUDA_HOST_INLINE void __threadfence() { asm volatile("" ::: "memory"); }
CUDA_HOST_INLINE void __threadfence_block() { __threadfence(); }
CUDA_HOST_INLINE void __threadfence_system() { __threadfence(); }
CUDA_HOST_INLINE void __nanosleep(unsigned) {}
// The time of the host, which counts on while other threads run.
CUDA_HOST_INLINE long long clock64() { return (long long)::clock(); }
CUDA_HOST_INLINE clock_t clock() { return ::clock(); }

// In a segment of `width` lanes; a lane whose source lies outside keeps its own value.
template <class T>
CUDA_HOST_INLINE cuda_host::Shuffled<T> __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_HOST_SITE) {
    const int first = cuda_host::lane() & ~(width - 1);
    return cuda_host::shuffle(mask, value, first | (source & (width - 1)), site);
}
template <class T>
CUDA_HOST_INLINE cuda_host::Shuffled<T> __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_HOST_SITE) {
    const int lane = cuda_host::lane(), source = lane - int(delta);
    return cuda_host::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source, site);
}
template <class T>
CUDA_HOST_INLINE cuda_host::Shuffled<T> __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_HOST_SITE) {
    const int lane = cuda_host::lane(), source = lane + int(delta);
    return cuda_host::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, site);
}
template <class T>
CUDA_HOST_INLINE cuda_host::Shuffled<T> __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, CUDA_HOST_SITE) {
    const int lane = cuda_host::lane(), source = lane ^ lane_mask;
    return cuda_host::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, site);
}

CUDA_HOST_INLINE unsigned __activemask(CUDA_HOST_SITE) { return cuda_host_activemask(site); }
CUDA_HOST_INLINE unsigned __ballot_sync(unsigned mask, int predicate, CUDA_HOST_SITE) {
    return cuda_host_ballot(mask, predicate, site);
}
CUDA_HOST_INLINE int __any_sync(unsigned mask, int predicate, CUDA_HOST_SITE) {
    return cuda_host_ballot(mask, predicate, site) != 0;
}
CUDA_HOST_INLINE int __all_sync(unsigned mask, int predicate, CUDA_HOST_SITE) {
    return cuda_host_ballot(mask, !predicate, site) == 0;
}

// The lanes that give the same value; or all lanes of the mask, if all give the same one.
template <class T>
CUDA_HOST_INLINE unsigned __match_any_sync(unsigned mask, T value, CUDA_HOST_SITE) {
    return cuda_host::match("__match_any_sync", mask, value, site).same;
}
template <class T>
CUDA_HOST_INLINE unsigned __match_all_sync(unsigned mask, T value, int* all, CUDA_HOST_SITE) {
    const cuda_host::Match match = cuda_host::match("__match_all_sync", mask, value, site);
    *all = match.same == match.present;
    return *all ? match.same : 0;
}

#define CUDA_HOST_REDUCE(name, T, expression)                                                          \
    static inline void cuda_host_##name##T(unsigned present, const cuda_host::Operands& in,            \
                                           cuda_host::Operands& out) {                                 \
        T a = 0, b;                                                                                    \
        bool first = true;                                                                             \
        for (int lane = 0; lane < 32; lane++) {                                                        \
            if (!(present >> lane & 1)) continue;                                                      \
            ::memcpy(&b, in[lane], sizeof b);                                                            \
            a = first ? b : expression;                                                                \
            first = false;                                                                             \
        }                                                                                              \
        for (int lane = 0; lane < 32; lane++) ::memcpy(out[lane], &a, sizeof a);                         \
    }                                                                                                  \
    CUDA_HOST_INLINE T name(unsigned mask, T value, CUDA_HOST_SITE) {                                  \
        T result;                                                                                      \
        cuda_host_collective(mask, #name, &value, sizeof value, &result, sizeof result,                \
                             cuda_host_##name##T, site);                                               \
        return result;                                                                                 \
    }
CUDA_HOST_REDUCE(__reduce_add_sync, unsigned, a + b)
CUDA_HOST_REDUCE(__reduce_add_sync, int, int(unsigned(a) + unsigned(b)))
CUDA_HOST_REDUCE(__reduce_min_sync, unsigned, (b < a ? b : a))
CUDA_HOST_REDUCE(__reduce_min_sync, int, (b < a ? b : a))
CUDA_HOST_REDUCE(__reduce_max_sync, unsigned, (b > a ? b : a))
CUDA_HOST_REDUCE(__reduce_max_sync, int, (b > a ? b : a))
CUDA_HOST_REDUCE(__reduce_and_sync, unsigned, a& b)
CUDA_HOST_REDUCE(__reduce_or_sync, unsigned, a | b)
CUDA_HOST_REDUCE(__reduce_xor_sync, unsigned, a ^ b)

}  // namespace
}  // namespace cuda_user
