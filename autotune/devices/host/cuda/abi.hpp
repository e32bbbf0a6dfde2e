// What a compiled kernel and the runtime know of each other. Both sides include this file.
#pragma once
#include <stddef.h>
#include <stdint.h>

// What a source declares and what CUDA declares are in one namespace, so that functions of one name add to each other.
namespace cuda_user {
inline namespace {}

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

}  // namespace cuda_user

namespace cuda_host {

using cuda_user::dim3;
using cuda_user::uint3;

// The part of a CUDA thread that device code reads.
struct ThreadIndex {
    uint3 index;
    unsigned linear;  // x fastest: warp = linear / 32, lane = linear % 32
};

struct Environment {
    ThreadIndex* thread;  // the one that runs
    uint3 block;
    dim3 block_dim, grid_dim;
    char* dynamic_shared;  // of the launch
};

// A line of a template, or of a file it includes.
struct Site {
    const char* file;
    int line;
};

constexpr int max_parameters = 64;

// A kernel, as the driver sees it. kinds: p pointer, f floating point, i integer, s structure. most_threads: of a
// block, by its launch bounds; 0 without.
struct KernelInfo {
    void (*call)(void** arguments);
    int n_parameters;
    int sizes[max_parameters];
    char kinds[max_parameters];
    long most_threads;
    unsigned allowed;
};

// What a source allows for its kernels, which the checker refuses otherwise.
constexpr unsigned allows_returned = 1, allows_unset = 2;

constexpr unsigned max_operand_bytes = 64;
using Operands = unsigned char[32][max_operand_bytes];  // of each lane
// What a warp does together: the operands of the lanes in `present` -> the result of each.
using Collective = void (*)(unsigned present, const Operands& in, Operands& out);

constexpr unsigned max_axes = 5;

// An array as copies of boxes read it: what stands for a tensor map here. The driver mirrors this structure.
struct BoxMap {
    uint64_t address;
    uint32_t n_axes, element;  // bytes
    uint64_t shape[max_axes];  // in elements, fastest axis first
    uint64_t strides[max_axes - 1];  // bytes
    uint32_t box[max_axes];
    uint32_t swizzle;  // bytes
};

enum class Vote : int { none, count, all, any };  // what __syncthreads and its relatives return

}  // namespace cuda_host

extern "C" {
extern cuda_host::Environment cuda_host_environment;
int cuda_host_barrier(cuda_host::Vote vote, int predicate, cuda_host::Site site);
void cuda_host_named_barrier(unsigned number, unsigned n_threads, int waits, cuda_host::Site site);
void cuda_host_syncwarp(unsigned mask, cuda_host::Site site);
void cuda_host_shuffle(unsigned mask, void* value, unsigned n_bytes, int source_lane, cuda_host::Site site);
unsigned cuda_host_ballot(unsigned mask, int predicate, cuda_host::Site site);
void cuda_host_collective(unsigned mask, const char* name, const void* in, unsigned n_in, void* out, unsigned n_out,
                          cuda_host::Collective function, cuda_host::Site site);
unsigned cuda_host_activemask(cuda_host::Site site);
void* cuda_host_dynamic_shared();
void cuda_host_async_copy(void* to, const void* from, unsigned n_bytes, unsigned n_zeros, cuda_host::Site site);
void cuda_host_async_commit();
void cuda_host_async_wait(unsigned n_pending);
// Addresses of shared memory count from the dynamic array.
void cuda_host_mbarrier_init(unsigned address, unsigned n_threads, cuda_host::Site site);
void cuda_host_mbarrier_arrive(unsigned address, unsigned n_bytes, cuda_host::Site site);  // bytes expected besides
void cuda_host_mbarrier_wait(unsigned address, unsigned parity, cuda_host::Site site);
void cuda_host_copy_box(unsigned to, const void* map, unsigned barrier, const int* at, unsigned n_axes,
                        cuda_host::Site site);
// Accesses that the compiler's instrumentation does not see; without effect in the plain build.
void cuda_host_note_atomic(const void* address, unsigned n_bytes, cuda_host::Site site);
void cuda_host_note_cas(const void* address, unsigned n_bytes, cuda_host::Site site);
void cuda_host_note_read(const void* address, unsigned n_bytes, cuda_host::Site site);
void cuda_host_note_write(const void* address, unsigned n_bytes, cuda_host::Site site);
[[noreturn]] void cuda_host_stop(cuda_host::Site site, const char* format, ...) __attribute__((format(printf, 2, 3)));
}
