// Loads and stores with cache hints, and asynchronous copies to shared memory.
#pragma once

namespace cuda_user {
inline namespace {

#define CUDA_HOST_LOAD(name)            \
    template <class T>                  \
    CUDA_HOST_INLINE T name(const T* address) { \
        return *address;                \
    }
CUDA_HOST_LOAD(__ldg)
CUDA_HOST_LOAD(__ldca)
CUDA_HOST_LOAD(__ldcg)
CUDA_HOST_LOAD(__ldcs)
CUDA_HOST_LOAD(__ldcv)
CUDA_HOST_LOAD(__ldlu)

#define CUDA_HOST_STORE(name)                 \
    template <class T>                        \
    CUDA_HOST_INLINE void name(T* address, T value) { \
        *address = value;                     \
    }
CUDA_HOST_STORE(__stca)
CUDA_HOST_STORE(__stcg)
CUDA_HOST_STORE(__stcs)
CUDA_HOST_STORE(__stwb)
CUDA_HOST_STORE(__stwt)

// The compiler's own calls of these, for copies of structures, are not checked; a source's are.
CUDA_HOST_INLINE void* memcpy(void* to, const void* from, size_t n_bytes, CUDA_HOST_SITE) {
    cuda_host_note_read(from, unsigned(n_bytes), site);
    cuda_host_note_write(to, unsigned(n_bytes), site);
    return ::memcpy(to, from, n_bytes);
}
CUDA_HOST_INLINE void* memmove(void* to, const void* from, size_t n_bytes, CUDA_HOST_SITE) {
    cuda_host_note_read(from, unsigned(n_bytes), site);
    cuda_host_note_write(to, unsigned(n_bytes), site);
    return ::memmove(to, from, n_bytes);
}
CUDA_HOST_INLINE void* memset(void* to, int value, size_t n_bytes, CUDA_HOST_SITE) {
    cuda_host_note_write(to, unsigned(n_bytes), site);
    return ::memset(to, value, n_bytes);
}
CUDA_HOST_INLINE void* malloc(size_t, CUDA_HOST_SITE) {
    cuda_host_stop(site, "malloc: the host device has no heap for device code");
}

// The data may arrive at any time until the wait: a missing wait reads what was there before.
CUDA_HOST_INLINE void __pipeline_memcpy_async(void* to, const void* from, size_t n_bytes, size_t n_zeros = 0,
                                              CUDA_HOST_SITE) {
    cuda_host_async_copy(to, from, unsigned(n_bytes), unsigned(n_zeros), site);
}
CUDA_HOST_INLINE void __pipeline_commit() { cuda_host_async_commit(); }
CUDA_HOST_INLINE void __pipeline_wait_prior(unsigned n_pending) { cuda_host_async_wait(n_pending); }

// Addresses of shared memory count from the dynamic array, the only one that they are good for here.
CUDA_HOST_INLINE size_t __cvta_generic_to_shared(const void* pointer) {
    return size_t(static_cast<const char*>(pointer) - static_cast<const char*>(cuda_host_dynamic_shared()));
}
CUDA_HOST_INLINE void* __cvta_shared_to_generic(size_t address) {
    return static_cast<char*>(cuda_host_dynamic_shared()) + address;
}

// Barriers in shared memory and copies of boxes, as templates call them where PTX has mbarrier and cp.async.bulk.tensor.
CUDA_HOST_INLINE void cuda_host_init_barrier(unsigned barrier, int n_threads, CUDA_HOST_SITE) {
    cuda_host_mbarrier_init(barrier, unsigned(n_threads), site);
}
CUDA_HOST_INLINE void cuda_host_arrive(unsigned barrier, int n_bytes = 0, CUDA_HOST_SITE) {
    cuda_host_mbarrier_arrive(barrier, unsigned(n_bytes), site);
}
CUDA_HOST_INLINE void cuda_host_wait(unsigned barrier, unsigned parity, CUDA_HOST_SITE) {
    cuda_host_mbarrier_wait(barrier, parity, site);
}
template <unsigned n_axes>
CUDA_HOST_INLINE void cuda_host_copy(unsigned to, const void* map, unsigned barrier, const int (&at)[n_axes],
                                     CUDA_HOST_SITE) {
    cuda_host_copy_box(to, map, barrier, at, n_axes, site);
}

}  // namespace
}  // namespace cuda_user
