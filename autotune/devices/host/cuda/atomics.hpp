// Atomics: threads run one at a time, so a plain read-modify-write is one.
#pragma once

namespace cuda_host {
template <class T>
using Same = typename std::common_type<T>::type;  // keeps T from being deduced from the value
}

namespace cuda_user {
inline namespace {

#define CUDA_HOST_ATOMIC(name, expression)                                       \
    template <class T>                                                           \
    CUDA_HOST_UNCHECKED T name(T* address, cuda_host::Same<T> value, CUDA_HOST_SITE) { \
        cuda_host_note_atomic(address, sizeof(T), site);                         \
        const T old = *address;                                                  \
        *address = T(expression);                                                \
        return old;                                                              \
    }                                                                            \
    template <class T>                                                           \
    CUDA_HOST_INLINE T name##_block(T* address, cuda_host::Same<T> value, CUDA_HOST_SITE) { \
        return name<T>(address, value, site);                                    \
    }                                                                            \
    template <class T>                                                           \
    CUDA_HOST_INLINE T name##_system(T* address, cuda_host::Same<T> value, CUDA_HOST_SITE) { \
        return name<T>(address, value, site);                                    \
    }
CUDA_HOST_ATOMIC(atomicAdd, old + value)
CUDA_HOST_ATOMIC(atomicSub, old - value)
CUDA_HOST_ATOMIC(atomicExch, value)
CUDA_HOST_ATOMIC(atomicMin, value < old ? value : old)
CUDA_HOST_ATOMIC(atomicMax, value > old ? value : old)
CUDA_HOST_ATOMIC(atomicAnd, old& value)
CUDA_HOST_ATOMIC(atomicOr, old | value)
CUDA_HOST_ATOMIC(atomicXor, old ^ value)
CUDA_HOST_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
CUDA_HOST_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)

template <class T>
CUDA_HOST_UNCHECKED T atomicCAS(T* address, cuda_host::Same<T> expected, cuda_host::Same<T> value, CUDA_HOST_SITE) {
    cuda_host_note_cas(address, sizeof(T), site);
    const T old = *address;
    if (old == expected) *address = value;
    return old;
}
template <class T>
CUDA_HOST_INLINE T atomicCAS_block(T* address, cuda_host::Same<T> expected, cuda_host::Same<T> value, CUDA_HOST_SITE) {
    return atomicCAS<T>(address, expected, value, site);
}
template <class T>
CUDA_HOST_INLINE T atomicCAS_system(T* address, cuda_host::Same<T> expected, cuda_host::Same<T> value, CUDA_HOST_SITE) {
    return atomicCAS<T>(address, expected, value, site);
}

}  // namespace
}  // namespace cuda_user
