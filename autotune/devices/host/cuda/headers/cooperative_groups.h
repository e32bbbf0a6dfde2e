// Cooperative groups: the block, tiles of a warp, and lanes that happen to be together. They are made of the barriers,
// shuffles and votes of threads.hpp, so that the checker sees what they order.
#pragma once

namespace cooperative_groups {

struct thread_block {
    static void sync(CUDA_HOST_SITE) { __syncthreads(site); }
    static unsigned thread_rank() { return cuda_host_environment.thread->linear; }
    static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned size() { return num_threads(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};
CUDA_HOST_INLINE thread_block this_thread_block() { return {}; }
template <unsigned n>
struct block_tile_memory {};  // for tiles of several warps, which the host device has not
template <unsigned n>
CUDA_HOST_INLINE thread_block this_thread_block(block_tile_memory<n>&) {
    return {};
}

struct grid_group {
    template <class... None>
    static void sync(None...) {
        static_assert(cuda_host::never<None...>, "the host device has no grid-wide sync: blocks run one after another");
    }
    static constexpr bool is_valid() { return false; }
    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long block_rank() {
        return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    static unsigned long long num_threads() { return num_blocks() * thread_block::size(); }
    static unsigned long long size() { return num_threads(); }
    static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
    static dim3 group_dim() { return gridDim; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 block_index() { return blockIdx; }
};
CUDA_HOST_INLINE grid_group this_grid() { return {}; }
CUDA_HOST_REFUSED(this_cluster, "clusters of blocks")

// Some lanes of a warp, numbered from the lowest.
struct warp_lanes {
    unsigned mask;

    unsigned num_threads() const { return unsigned(__popc(mask)); }
    unsigned size() const { return num_threads(); }
    unsigned thread_rank() const { return unsigned(__popc(mask & ((1u << cuda_host::lane()) - 1))); }
    void sync(CUDA_HOST_SITE) const { __syncwarp(mask, site); }

    int lane_of(unsigned rank) const {
        unsigned rest = mask;
        for (unsigned i = 0; i < rank; i++) rest &= rest - 1;
        return rest ? __ffs(int(rest)) - 1 : cuda_host::lane();
    }
    unsigned ranks(unsigned lanes) const {  // a mask of lanes as a mask of ranks
        unsigned result = 0, rank = 0;
        for (unsigned rest = mask; rest; rest &= rest - 1, rank++)
            if (lanes & rest & -rest) result |= 1u << rank;
        return result;
    }

    template <class T>
    T shfl(T value, int rank, CUDA_HOST_SITE) const {
        return cuda_host::shuffle_words(mask, value, lane_of(unsigned(rank) % size()), site);
    }
    template <class T>
    T shfl_up(T value, unsigned delta, CUDA_HOST_SITE) const {
        const unsigned rank = thread_rank();
        return cuda_host::shuffle_words(mask, value, lane_of(delta > rank ? rank : rank - delta), site);
    }
    template <class T>
    T shfl_down(T value, unsigned delta, CUDA_HOST_SITE) const {
        const unsigned rank = thread_rank();
        return cuda_host::shuffle_words(mask, value, lane_of(rank + delta < size() ? rank + delta : rank), site);
    }
    int any(int predicate, CUDA_HOST_SITE) const { return __any_sync(mask, predicate, site); }
    int all(int predicate, CUDA_HOST_SITE) const { return __all_sync(mask, predicate, site); }
    unsigned ballot(int predicate, CUDA_HOST_SITE) const { return ranks(__ballot_sync(mask, predicate, site)); }
    template <class T>
    unsigned match_any(T value, CUDA_HOST_SITE) const {
        return ranks(__match_any_sync(mask, value, site));
    }
    template <class T>
    unsigned match_all(T value, int& all, CUDA_HOST_SITE) const {
        return ranks(__match_all_sync(mask, value, &all, site));
    }
};

struct coalesced_group : warp_lanes {
    unsigned group_number = 0, n_groups = 1;
    unsigned meta_group_rank() const { return group_number; }
    unsigned meta_group_size() const { return n_groups; }
};
CUDA_HOST_INLINE coalesced_group coalesced_threads(CUDA_HOST_SITE) { return {{__activemask(site)}}; }

// Any of the groups of a block, as the parameter of a function.
class thread_group {
    unsigned mask;  // 0: the block

public:
    thread_group(const thread_block&) : mask(0) {}
    thread_group(const warp_lanes& lanes) : mask(lanes.mask) {}
    unsigned size() const { return mask ? warp_lanes{mask}.size() : thread_block::size(); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const { return mask ? warp_lanes{mask}.thread_rank() : thread_block::thread_rank(); }
    void sync(CUDA_HOST_SITE) const {
        if (mask)
            __syncwarp(mask, site);
        else
            __syncthreads(site);
    }
};

template <unsigned n, class Parent = void>
struct thread_block_tile : warp_lanes {
    static_assert(n <= 32 && (n & (n - 1)) == 0, "the host device has tiles of 1, 2, 4, 8, 16 and 32 threads");
    unsigned first, n_parent;  // the rank of the tile's first thread in its parent, and the parent's threads
    operator thread_block_tile<n>() const { return {{this->mask}, first, n_parent}; }
    static constexpr unsigned num_threads() { return n; }
    static constexpr unsigned size() { return n; }
    unsigned thread_rank() const { return unsigned(cuda_host::lane()) % n; }
    unsigned meta_group_rank() const { return first / n; }
    unsigned meta_group_size() const { return (n_parent + n - 1) / n; }
    template <class T>
    T shfl_xor(T value, unsigned lane_mask, CUDA_HOST_SITE) const {
        return cuda_host::shuffle_words(this->mask, value, this->lane_of((thread_rank() ^ lane_mask) % n), site);
    }
};

CUDA_HOST_INLINE unsigned tile_mask(unsigned n) {
    return (n >= 32 ? ~0u : (1u << n) - 1) << (unsigned(cuda_host::lane()) & ~(n - 1) & 31);
}
template <unsigned n, class Parent>
CUDA_HOST_INLINE thread_block_tile<n, Parent> tiled_partition(const Parent& parent) {
    thread_block_tile<n, Parent> tile;
    tile.mask = tile_mask(n);
    tile.first = parent.thread_rank() & ~(n - 1);
    tile.n_parent = unsigned(parent.size());
    return tile;
}
CUDA_HOST_INLINE coalesced_group tiled_partition(const thread_block& parent, unsigned n) {
    return {{tile_mask(n)}, parent.thread_rank() / n, (parent.size() + n - 1) / n};
}
CUDA_HOST_INLINE coalesced_group tiled_partition(const coalesced_group& parent, unsigned n) {
    const unsigned number = parent.thread_rank() / n;
    unsigned mask = 0;
    for (unsigned rank = number * n; rank < (number + 1) * n && rank < parent.size(); rank++)
        mask |= 1u << parent.lane_of(rank);
    return {{mask}, number, (parent.size() + n - 1) / n};
}
template <class Label>
CUDA_HOST_INLINE coalesced_group labeled_partition(const warp_lanes& parent, Label label, CUDA_HOST_SITE) {
    return {{__match_any_sync(parent.mask, label, site)}};
}
CUDA_HOST_INLINE coalesced_group binary_partition(const warp_lanes& parent, bool side, CUDA_HOST_SITE) {
    return labeled_partition(parent, int(side), site);
}

template <class Group>
CUDA_HOST_INLINE void sync(const Group& group, CUDA_HOST_SITE) {
    group.sync(site);
}
template <class Group>
CUDA_HOST_INLINE unsigned thread_rank(const Group& group) {
    return unsigned(group.thread_rank());
}
template <class Group>
CUDA_HOST_INLINE unsigned group_size(const Group& group) {
    return unsigned(group.size());
}
// One thread of the group, the same for all.
template <class Group, class Function>
CUDA_HOST_INLINE void invoke_one(const Group& group, Function function) {
    if (group.thread_rank() == 0) function();
}

}  // namespace cooperative_groups
