// Scans over the threads of a group of lanes, in the order of their ranks.
#pragma once
#include <cooperative_groups/reduce.h>

namespace cooperative_groups {

template <class Group, class T, class Operation>
CUDA_HOST_INLINE T inclusive_scan(const Group& group, T value, Operation&& operation, CUDA_HOST_SITE) {
    T result = group.shfl(value, 0, site);
    for (unsigned rank = 1; rank < group.size(); rank++) {
        const T next = group.shfl(value, int(rank), site);
        if (rank <= group.thread_rank()) result = operation(result, next);
    }
    return result;
}
template <class Group, class T>
CUDA_HOST_INLINE T inclusive_scan(const Group& group, T value, CUDA_HOST_SITE) {
    return inclusive_scan(group, value, plus<T>(), site);
}
// The first thread gets T().
template <class Group, class T, class Operation>
CUDA_HOST_INLINE T exclusive_scan(const Group& group, T value, Operation&& operation, CUDA_HOST_SITE) {
    const T before = group.shfl_up(inclusive_scan(group, value, operation, site), 1, site);
    return group.thread_rank() ? before : T();
}
template <class Group, class T>
CUDA_HOST_INLINE T exclusive_scan(const Group& group, T value, CUDA_HOST_SITE) {
    return exclusive_scan(group, value, plus<T>(), site);
}

}  // namespace cooperative_groups
