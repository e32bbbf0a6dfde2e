// Declaration keywords and built-in variables.
#pragma once

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __managed__
// `used`: a variable that nobody writes must not be folded into a constant; a launch fills constant memory before it.
// `no_reorder`: variables lie in the order of the source, so that what is to be found behind the last one lies there.
#define __constant__ __attribute__((used, no_reorder))
// One copy serves all blocks, because they run one after another. `used`, or its reads would go unseen.
#define __shared__ static __attribute__((used))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __maxnreg__(n)
#define __builtin_assume(condition) ((condition) ? (void)0 : cuda_host_stop(cuda_host::here(), "a false assumption: %s", #condition))
#define __assume(condition) __builtin_assume(condition)
#ifdef CUDA_HOST_CHECK
#define __forceinline__ inline  // instrumented code is long: copies of it cost compile time and show nothing new
#else
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define alignas(n) __attribute__((aligned(n)))  // g++ refuses `__shared__ alignas(16) T x`, nvcc takes it
#define __restrict__ __restrict

#define threadIdx (cuda_host_environment.thread->index)
static constexpr const auto& blockIdx = cuda_host_environment.block;
static constexpr const auto& blockDim = cuda_host_environment.block_dim;
static constexpr const auto& gridDim = cuda_host_environment.grid_dim;
static constexpr int warpSize = 32;

// `extern __shared__ T name[];` cannot be spelt by a macro; it is rewritten, in place, to:
#define CUDA_HOST_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(cuda_host_dynamic_shared())
// and, outside of functions, where each launch has another one, to:
#define CUDA_HOST_DYNAMIC_SHARED_OF_FILE(T, name) T*& name = reinterpret_cast<T*&>(cuda_host_environment.dynamic_shared)

// For the functions below. An inlined function keeps its caller's line; a default argument is evaluated there.
#define CUDA_HOST_INLINE static inline __attribute__((always_inline))
#define CUDA_HOST_SITE cuda_host::Site site = cuda_host::here()
namespace cuda_host {
CUDA_HOST_INLINE constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
}
}  // namespace cuda_host

#ifdef CUDA_HOST_CHECK
#define CUDA_HOST_UNCHECKED __attribute__((no_sanitize("thread"), no_sanitize("undefined"), noinline)) static
#else
#define CUDA_HOST_UNCHECKED static inline
#endif

#undef assert
#define assert(condition) ((condition) ? (void)0 : cuda_host_stop(cuda_host::here(), "assertion failed: %s", #condition))
CUDA_HOST_INLINE void __trap(CUDA_HOST_SITE) { cuda_host_stop(site, "__trap()"); }
