// Copies to shared memory that a group waits for. The threads share the work: each copies every n-th piece.
#pragma once
#include <cooperative_groups.h>

namespace cooperative_groups {

template <class Group>
CUDA_HOST_INLINE void memcpy_async(const Group& group, void* to, const void* from, size_t n_bytes, CUDA_HOST_SITE) {
    char* const target = static_cast<char*>(to);
    const char* const source = static_cast<const char*>(from);
    const size_t together = uintptr_t(target) | uintptr_t(source) | n_bytes;
    const size_t piece = together % 16 == 0 ? 16 : together % 8 == 0 ? 8 : together % 4 == 0 ? 4 : 1;
    for (size_t at = piece * group.thread_rank(); at < n_bytes; at += piece * group.size())
        if (piece == 1)
            target[at] = source[at];
        else
            __pipeline_memcpy_async(target + at, source + at, piece, 0, site);
    __pipeline_commit();
}
template <class Group, class T>
CUDA_HOST_INLINE void memcpy_async(const Group& group, T* to, size_t n_to, const T* from, size_t n_from, CUDA_HOST_SITE) {
    memcpy_async(group, to, from, sizeof(T) * (n_to < n_from ? n_to : n_from), site);
}
template <unsigned n_pending, class Group>
CUDA_HOST_INLINE void wait_prior(const Group& group, CUDA_HOST_SITE) {
    __pipeline_wait_prior(n_pending);
    group.sync(site);
}
template <class Group>
CUDA_HOST_INLINE void wait(const Group& group, CUDA_HOST_SITE) {
    wait_prior<0>(group, site);
}

}  // namespace cooperative_groups
