// Reductions of a value of each thread of a group of lanes; every thread gets the result.
#pragma once
#include <cooperative_groups.h>

namespace cooperative_groups {

#define CUDA_HOST_GROUP_OPERATION(name, expression)   \
    template <class T>                                \
    struct name {                                     \
        T operator()(T a, T b) const { return expression; } \
    };
CUDA_HOST_GROUP_OPERATION(plus, T(a + b))
CUDA_HOST_GROUP_OPERATION(less, b < a ? b : a)
CUDA_HOST_GROUP_OPERATION(greater, a < b ? b : a)
CUDA_HOST_GROUP_OPERATION(bit_and, T(a & b))
CUDA_HOST_GROUP_OPERATION(bit_or, T(a | b))
CUDA_HOST_GROUP_OPERATION(bit_xor, T(a ^ b))

// In the order of the ranks.
template <class Group, class T, class Operation>
CUDA_HOST_INLINE T reduce(const Group& group, T value, Operation&& operation, CUDA_HOST_SITE) {
    T result = group.shfl(value, 0, site);
    for (unsigned rank = 1; rank < group.size(); rank++) {
        const T next = group.shfl(value, int(rank), site);
        result = operation(result, next);
    }
    return result;
}

template <class Group, class T, class Operation>
CUDA_HOST_INLINE void reduce_update_async(const Group& group, T* target, T value, Operation&& operation, CUDA_HOST_SITE) {
    static_assert(std::is_same<typename std::decay<Operation>::type, plus<T>>::value, "the host device adds only");
    const T sum = reduce(group, value, operation, site);
    if (group.thread_rank() == 0) atomicAdd(target, sum, site);
}

}  // namespace cooperative_groups
