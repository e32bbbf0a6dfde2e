// Kernels with one bug each, and some without. Most are compiled together; each is launched as 2 blocks of 64 threads
// on n = 100 floats, with 256 bytes of dynamic shared memory. `finds:` is what the check build must report, as a regular
// expression, and the line marked HERE is the one that it must name. A section without `finds:` must pass.

//@ right_block_sum
extern "C" __global__ void right_block_sum(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    s[t] = g < n ? in[g] : 0.0f;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half)
            s[t] += s[t + half];
        __syncthreads();
    }
    if (g < n)
        out[g] = s[0];
}

//@ right_atomic
extern "C" __global__ void right_atomic(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n)
        atomicAdd(&out[threadIdx.x % 4], in[g]);
}

//@ right_negative_shift
extern "C" __global__ void right_negative_shift(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n)
        out[g] = (float)((int)(0xfffffc00u | g) << 22 >> 22) + in[g];  // sign extension, as kernels do it
}

//@ right_pointer_to_shared
__device__ __noinline__ float pick(const float* values, int i) { return values[i]; }
extern "C" __global__ void right_pointer_to_shared(float* out, const float* in, int n)
{
    __shared__ union { float4 vectors[16]; float floats[64]; } u;
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    if (t < 16)
        u.vectors[t] = make_float4(g, g, g, g);
    __syncthreads();
    if (g < n)
        out[g] = pick(u.floats, 63 - t) + in[g];
}

//@ right_warp_chain
extern "C" __global__ void right_warp_chain(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, lane = t % 32, g = blockIdx.x * 64 + t;
    s[t] = g < n ? in[g] : 0.0f;
    if (lane < 2)
        __syncwarp(0x3);
    if (lane == 1 || lane == 2)
        __syncwarp(0x6);
    float v = 0.0f;
    if (lane == 2)
        v = s[t - 2];  // lane 0 -> lane 1 -> lane 2
    if (g < n)
        out[g] = v;
}

//@ read_past_buffer
// finds: out-of-bounds read of 4 bytes, 400 bytes from the start of buffer in, which has 400
extern "C" __global__ void read_past_buffer(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n)
        out[g] = in[g + 1];  // HERE
}

//@ write_past_buffer
// finds: out-of-bounds write of 4 bytes, 400 bytes from the start of buffer out
extern "C" __global__ void write_past_buffer(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    out[g] = g < n ? in[g] : 0.0f;  // HERE
}

//@ write_before_buffer
// finds: out-of-bounds write of 4 bytes, 4 bytes before the start of buffer out
extern "C" __global__ void write_before_buffer(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x - 1;
    if (g < n)
        out[g] = in[g + 1 < n ? g + 1 : 0];  // HERE
}

//@ vector_past_buffer
// finds: out-of-bounds read of (4|8|16) bytes, 400 bytes from the start of buffer in
extern "C" __global__ void vector_past_buffer(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n) {
        const float4 v = __ldg(reinterpret_cast<const float4*>(in) + (g + 3) / 4);  // HERE
        out[g] = v.x + v.y + v.z + v.w;
    }
}

//@ past_static_shared
// finds: index outside the bounds of an array|out-of-bounds write of 4 bytes
extern "C" __global__ void past_static_shared(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    s[t + 1] = g < n ? in[g] : 0.0f;  // HERE
    __syncthreads();
    if (g < n)
        out[g] = s[64 - t];
}

//@ past_dynamic_shared
// finds: out-of-bounds write of 4 bytes, 256 bytes from the start of shared memory the dynamic array, which has 256
extern "C" __global__ void past_dynamic_shared(float* out, const float* in, int n)
{
    extern __shared__ float s[];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    s[t + 8] = g < n ? in[g] : 0.0f;  // HERE
    __syncthreads();
    if (g < n)
        out[g] = s[t + 8];
}

//@ missing_barrier_before_read
// finds: race on shared memory s\+\d+: (read here .*written|written here .*read) by .* with no barrier between|nobody has written
extern "C" __global__ void missing_barrier_before_read(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    s[t] = g < n ? in[g] : 0.0f;
    const float v = s[63 - t];  // HERE
    if (g < n)
        out[g] = v;
}

//@ missing_barrier_before_write
// finds: race on shared memory s\+\d+: written here .*read by a thread of warp \d of the block, with no barrier between
extern "C" __global__ void missing_barrier_before_write(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    float sum = 0.0f;
    for (int i = 0; i < 4; i++) {
        s[t] = (g < n ? in[g] : 0.0f) + i;  // HERE
        __syncthreads();
        sum += s[(t + 7) % 64];
    }
    if (g < n)
        out[g] = sum;
}

//@ missing_warp_barrier
// finds: race on shared memory s\+\d+|nobody has written, s\+4
extern "C" __global__ void missing_warp_barrier(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    s[t] = g < n ? in[g] : 0.0f;
    const float v = s[t ^ 1];  // HERE
    if (g < n)
        out[g] = v;
}

//@ warp_barrier_across_warps
// finds: race on shared memory s\+\d+: read here .*written by thread \d+ of the block, with no barrier|nobody has written
extern "C" __global__ void warp_barrier_across_warps(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    s[t] = g < n ? in[g] : 0.0f;
    __syncwarp();
    const float v = s[63 - t];  // HERE
    if (g < n)
        out[g] = v;
}

//@ divergent_barrier
// finds: returned while the other 32 threads wait at __syncthreads|divergent barrier|have returned
extern "C" __global__ void divergent_barrier(float* out, const float* in, int n)
{
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    if (t < 32)
        __syncthreads();  // HERE
    if (g < n)
        out[g] = in[g];
}

//@ two_barriers
// finds: divergent barrier: this thread is at __syncthreads \[bugs.cu.j2:\d+\], 32 others wait at __syncthreads
extern "C" __global__ void two_barriers(float* out, const float* in, int n)
{
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    if (t < 32)
        __syncthreads();
    else
        __syncthreads();  // HERE
    if (g < n)
        out[g] = in[g];
}

//@ named_barriers_apart
// finds: race on shared memory s\+\d+: read here .*written by thread \d+ of the block, with no barrier|nobody has written
extern "C" __global__ void named_barriers_apart(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    s[t] = g < n ? in[g] : 0.0f;
    cuda_host_bar_sync(1 + t / 32, 32);
    const float v = s[63 - t];  // HERE
    if (g < n)
        out[g] = v;
}

//@ named_barrier_left_early
// finds: race on shared memory s\+\d+: written here .*read by a thread of warp 0
extern "C" __global__ void named_barrier_left_early(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    s[t] = g < n ? in[g] : 0.0f;
    cuda_host_bar_sync(1, 64);
    if (t < 32)
        cuda_host_bar_arrive(2, 64);
    else
        cuda_host_bar_sync(2, 64);
    float v = 0.0f;
    if (t < 32)
        v = s[63 - t];
    else
        s[t] = v;  // HERE
    if (g < n)
        out[g] = v;
}

//@ early_return
// finds: __syncthreads .*, but 28 threads of the block have returned|returned while the other 36 threads wait
extern "C" __global__ void early_return(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g >= n)
        return;
    __syncthreads();  // HERE
    out[g] = in[g];
}

//@ unwritten_shared
// finds: read of shared memory that nobody has written, s\+52 \(4 bytes\)
extern "C" __global__ void unwritten_shared(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    if (t != 13)
        s[t] = g < n ? in[g] : 0.0f;
    __syncthreads();
    if (g < n)
        out[g] = s[t];  // HERE
}

//@ never_written_shared
// finds: read of shared memory that nobody has written, s\+0
extern "C" __global__ void never_written_shared(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    if (g < n)
        out[g] = s[t] + in[g];  // HERE
}

//@ misaligned_vector
// finds: misaligned address: .*float4.* needs a multiple of 16
extern "C" __global__ void misaligned_vector(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    const float4 v = reinterpret_cast<const float4*>(in + 1)[g / 8];  // HERE
    if (g < n)
        out[g] = v.x;
}

//@ misaligned_cached_load
// finds: misaligned address: .*float2.* needs a multiple of 8
extern "C" __global__ void misaligned_cached_load(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    const float2 v = __ldg(reinterpret_cast<const float2*>(in + 1) + g / 4);  // HERE
    if (g < n)
        out[g] = v.x;
}

//@ absent_lane
// finds: __shfl_sync .*: lane 0 reads lane 20, which takes no part
extern "C" __global__ void absent_lane(float* out, const float* in, int n)
{
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    float v = g < n ? in[g] : 0.0f;
    if (t < 16)
        v = __shfl_sync(0x0000ffffu, v, 20);  // HERE
    if (g < n)
        out[g] = v;
}

//@ lane_outside_mask
// finds: __shfl_sync .*: lane 16 calls with mask 0x0000ffff, which leaves it out
extern "C" __global__ void lane_outside_mask(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    float v = g < n ? in[g] : 0.0f;
    v = __shfl_down_sync(0x0000ffffu, v, 1);  // HERE
    if (g < n)
        out[g] = v;
}

//@ shuffle_against_barrier
// finds: deadlock: 16 threads \(first 0\) wait at __shfl_sync .*; 48 threads \(first 16\) wait at __syncthreads
extern "C" __global__ void shuffle_against_barrier(float* out, const float* in, int n)
{
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    float v = g < n ? in[g] : 0.0f;
    if (t < 16)
        v = __shfl_xor_sync(0xffffffffu, v, 1);  // HERE
    else
        __syncthreads();
    if (g < n)
        out[g] = v;
}

//@ divergent_warp
// finds: divergent warp: lane 16 is at __shfl_sync .*, other lanes of its mask wait at __shfl_sync
extern "C" __global__ void divergent_warp(float* out, const float* in, int n)
{
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    float v = g < n ? in[g] : 0.0f;
    if (t % 32 < 16)
        v = __shfl_xor_sync(0xffffffffu, v, 1);
    else
        v = __shfl_xor_sync(0xffffffffu, v, 2);  // HERE
    if (g < n)
        out[g] = v;
}

//@ race_after_a_read_of_its_own
// finds: race on shared memory s\+4: written here .*read by a thread of warp 0
extern "C" __global__ void race_after_a_read_of_its_own(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = in[t % n];
    __syncthreads();
    const float next = s[(t + 1) % 64];  // HERE: the writer's own read, below, is no part of it
    const float own = s[t];
    s[t] = next + own;
    if (t < n)
        out[t] = next;
}

//@ race_that_looks_unset
// finds: race on shared memory s\+\d+: (written here .*read by a thread of warp|read here .*written by thread)|nobody has written
extern "C" __global__ void race_that_looks_unset(float* out, const float* in, int n)
{
    volatile __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = in[t % n];  // HERE: lane 0 reads what lane 1 has not written yet, with no barrier between
    if (t < 32)
        out[t] = s[t + 1 - t / 31];
}

//@ race_between_blocks
// finds: race on buffer out\+0: written here .*, written by block 0 \(x fastest\), and nothing orders blocks
extern "C" __global__ void race_between_blocks(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n)
        out[threadIdx.x] = in[g];  // HERE
}

//@ sum_without_atomic
// finds: race on buffer out\+0: (read|written) here .*, written by thread 0 of the block, with no barrier between
extern "C" __global__ void sum_without_atomic(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n)
        out[0] += in[g];  // HERE
}

//@ atomic_and_plain
// finds: race on buffer out\+0: written here .*, written by thread 4 of the block
extern "C" __global__ void atomic_and_plain(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (threadIdx.x != 5 && g < n)
        atomicAdd(out, in[g]);
    if (threadIdx.x == 5)
        out[0] = 1.0f;  // HERE
}

//@ write_to_input
// finds: write to the read-only buffer in\+0
extern "C" __global__ void write_to_input(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n)
        const_cast<float*>(in)[g] = 1.0f;  // HERE
}

//@ atomic_past_buffer
// finds: out-of-bounds write of 4 bytes, 400 bytes from the start of buffer out
extern "C" __global__ void atomic_past_buffer(float* out, const float* in, int n)
{
    atomicAdd(&out[n], in[0]);  // HERE
}

//@ local_array
// finds: index outside the bounds of an array
extern "C" __global__ void local_array(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    float window[4];
    for (int i = 0; i < n - 95; i++)
        window[i] = in[0] * i;  // HERE
    if (g < n)
        out[g] = window[g % 4];
}

//@ shift_by_width
// finds: shift by a negative count, or by the width of the type or more
extern "C" __global__ void shift_by_width(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n)
        out[g] = (0xdeadbeefu >> (32 - g % 32)) + in[g];  // HERE
}

//@ division_by_zero
// finds: division by zero
extern "C" __global__ void division_by_zero(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n)
        out[g] = n / (g - 5) + in[g];  // HERE
}

//@ missing_wait
// finds: read of shared memory that nobody has written, s\+0
#include <cuda_pipeline.h>
extern "C" __global__ void missing_wait(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    __pipeline_memcpy_async(&s[t], &in[g < n ? g : 0], sizeof(float));
    __pipeline_commit();
    __syncthreads();
    if (g < n)
        out[g] = s[t];  // HERE
}

//@ template_shared_race
// finds: race on shared memory line\+\d+|nobody has written, line\+252
template <int N>
__device__ float reversed(float value, int i)
{
    __shared__ float line[N];
    line[i] = value;
    return line[N - 1 - i];  // HERE
}
extern "C" __global__ void template_shared_race(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    const float v = reversed<64>(g < n ? in[g] : 0.0f, threadIdx.x);
    if (g < n)
        out[g] = v;
}

//@ failed_assertion
// finds: assertion failed: n % 64 == 0
extern "C" __global__ void failed_assertion(float* out, const float* in, int n)
{
    assert(n % 64 == 0);  // HERE
    out[threadIdx.x] = in[threadIdx.x];
}

//@ copy_before_barrier
// finds: race on shared memory s\+\d+: (written|read) here .* with no barrier between
extern "C" __global__ void copy_before_barrier(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int t = threadIdx.x, g = blockIdx.x * 64 + t;
    s[t] = g < n ? in[g] : 0.0f;
    __syncthreads();
    float v = s[63 - t];
    __pipeline_memcpy_async(&s[t], &in[g < n ? g : 0], sizeof(float));  // HERE
    __pipeline_commit();
    __syncthreads();  // too late: the copy may already have arrived
    __pipeline_wait_prior(0);
    __syncthreads();
    v += s[(t + 7) % 64];
    if (g < n)
        out[g] = v;
}

//@ right_matrices
extern "C" __global__ void right_matrices(float* out, const float* in, int n)
{
    __shared__ __align__(16) float rows[2][32][4];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = blockIdx.x * 64 + threadIdx.x;
    for (int i = 0; i < 4; i++)
        rows[warp][lane][i] = lane + i;
    __syncwarp();
    unsigned a[4];
    int c[4] = {};
    cuda_host_ldmatrix<4>(a, rows[warp][lane]);
    cuda_host_mma_m16n8k32_s8(c, a, a);
    if (g < n)
        out[g] = in[g] + c[0];
}

//@ missing_lane_of_a_product
// finds: mma.m16n8k32 of s8: lanes 0x00000020 take no part, and all 32 must
extern "C" __global__ void missing_lane_of_a_product(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    unsigned a[4] = {}, b[2] = {};
    int c[4] = {};
    if (threadIdx.x % 32 == 5)
        return;
    cuda_host_mma_m16n8k32_s8(c, a, b);  // HERE
    if (g < n)
        out[g] = in[g] + c[0];
}

//@ missing_lane_of_matrices
// finds: ldmatrix: lanes 0x80000000 take no part, and all 32 must
extern "C" __global__ void missing_lane_of_matrices(float* out, const float* in, int n)
{
    __shared__ __align__(16) float rows[64][4];
    const int g = blockIdx.x * 64 + threadIdx.x;
    unsigned a[1];
    for (int i = 0; i < 4; i++)
        rows[threadIdx.x][i] = i;
    __syncthreads();
    if (threadIdx.x % 32 == 31)
        return;
    cuda_host_ldmatrix<1>(a, rows[threadIdx.x]);  // HERE
    if (g < n)
        out[g] = in[g] + a[0];
}

//@ misaligned_row_of_matrices
// finds: misaligned address: a row of ldmatrix needs a multiple of 16
extern "C" __global__ void misaligned_row_of_matrices(float* out, const float* in, int n)
{
    __shared__ __align__(16) float rows[64][6];
    const int g = blockIdx.x * 64 + threadIdx.x;
    unsigned a[4];
    for (int i = 0; i < 6; i++)
        rows[threadIdx.x][i] = i;
    __syncthreads();
    cuda_host_ldmatrix<4>(a, rows[threadIdx.x]);  // HERE
    if (g < n)
        out[g] = in[g] + a[0];
}

//@ row_of_matrices_out_of_bounds
// finds: out-of-bounds read of 16 bytes, 256 bytes from the start of shared memory
extern "C" __global__ void row_of_matrices_out_of_bounds(float* out, const float* in, int n)
{
    extern __shared__ float4 dynamic[];  // 16 rows
    const int g = blockIdx.x * 64 + threadIdx.x;
    unsigned a[4];
    if (threadIdx.x < 16)
        dynamic[threadIdx.x] = make_float4(1, 2, 3, 4);
    __syncthreads();
    cuda_host_ldmatrix<4>(a, dynamic + threadIdx.x % 32);  // HERE
    if (g < n)
        out[g] = in[g] + a[0];
}

//@ unsynchronised_rows_of_matrices
// finds: race on shared memory rows\+\d+|nobody has written
extern "C" __global__ void unsynchronised_rows_of_matrices(float* out, const float* in, int n)
{
    __shared__ float4 rows[64];
    const int g = blockIdx.x * 64 + threadIdx.x;
    unsigned a[4];
    rows[threadIdx.x] = make_float4(1, 2, 3, 4);
    cuda_host_ldmatrix<4>(a, rows + (threadIdx.x ^ 1));  // HERE
    if (g < n)
        out[g] = in[g] + a[0];
}

//@ right_groups
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
extern "C" __global__ void right_groups(float* out, const float* in, int n)
{
    namespace cg = cooperative_groups;
    __shared__ float s[64];
    __shared__ unsigned n_small;
    const cg::thread_block block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<8>(block);
    const int g = block.group_index().x * block.size() + block.thread_rank(), first = block.group_index().x * 64;
    if (block.thread_rank() == 0)
        n_small = 0;
    cg::memcpy_async(block, s, in + first, sizeof(float) * (n - first < 64 ? n - first : 64));
    cg::wait(block);
    if (g < n && s[block.thread_rank()] < 0.5f) {  // one atomic for all that are together
        const cg::coalesced_group active = cg::coalesced_threads();
        if (active.thread_rank() == 0)
            atomicAdd(&n_small, active.size());
        active.sync();
    }
    const float sum = cg::reduce(tile, g < n ? s[block.thread_rank()] : 0.0f, cg::plus<float>());
    tile.sync();
    s[block.thread_rank()] = sum;
    tile.sync();
    if (g < n)
        out[g] = s[block.thread_rank() ^ 7];
}

//@ unsynchronised_tile
// finds: race on shared memory s\+\d+|nobody has written, s\+\d+
#include <cooperative_groups.h>
extern "C" __global__ void unsynchronised_tile(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const auto tile = cooperative_groups::tiled_partition<16>(cooperative_groups::this_thread_block());
    const int g = blockIdx.x * 64 + threadIdx.x;
    s[threadIdx.x] = tile.thread_rank();
    if (g < n)
        out[g] = s[threadIdx.x ^ 1];  // HERE
}

//@ tile_that_waits_for_its_own_lanes_only
// finds: race on shared memory s\+\d+|nobody has written, s\+\d+
#include <cooperative_groups.h>
extern "C" __global__ void tile_that_waits_for_its_own_lanes_only(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
    const int g = blockIdx.x * 64 + threadIdx.x;
    s[threadIdx.x] = tile.thread_rank();
    tile.sync();
    if (g < n)
        out[g] = s[threadIdx.x ^ 8];  // HERE
}

//@ group_copy_without_wait
// finds: race on shared memory s\+\d+|nobody has written, s\+\d+
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
extern "C" __global__ void group_copy_without_wait(float* out, const float* in, int n)
{
    __shared__ float s[32];
    const int g = blockIdx.x * 64 + threadIdx.x;
    cooperative_groups::memcpy_async(cooperative_groups::this_thread_block(), s, in, sizeof s);
    if (g < n)
        out[g] = s[(threadIdx.x + 9) % 32];  // HERE
}

//@ group_shuffle_in_a_branch
// finds: deadlock
#include <cooperative_groups.h>
extern "C" __global__ void group_shuffle_in_a_branch(float* out, const float* in, int n)
{
    const auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    const int g = blockIdx.x * 64 + threadIdx.x;
    float v = in[0];
    if (threadIdx.x % 2)
        v = tile.shfl(v, 0);  // HERE
    __syncthreads();
    if (g < n)
        out[g] = v;
}

//@ copied_bytes_out_of_bounds
// finds: out-of-bounds write of 8 bytes, 252 bytes from the start of shared memory s
extern "C" __global__ void copied_bytes_out_of_bounds(float* out, const float* in, int n)
{
    __shared__ float s[64];
    const int g = blockIdx.x * 64 + threadIdx.x;
    memcpy(&s[threadIdx.x], in, threadIdx.x < 63 ? 4 : 8);  // HERE
    if (g < n)
        out[g] = s[threadIdx.x];
}

//@ warp_matrices_of_half_a_warp
// finds: mma_sync: lanes 0xffff0000 take no part, and all 32 must
#include <mma.h>
extern "C" __global__ void warp_matrices_of_half_a_warp(float* out, const float* in, int n)
{
    using namespace nvcuda;
    __shared__ half s[256];
    const int g = blockIdx.x * 64 + threadIdx.x;
    for (int i = threadIdx.x; i < 256; i += 64)
        s[i] = half(1.0f);
    __syncthreads();
    if (threadIdx.x % 32 >= 16)
        return;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    wmma::load_matrix_sync(a, s, 16);
    wmma::load_matrix_sync(b, s, 16);
    wmma::mma_sync(c, a, b, c);  // HERE
    if (g < n)
        out[g] = c.x[0];
}

//@ right_class_in_shared_memory
#include <cuda_fp16.h>
extern "C" __global__ void right_class_in_shared_memory(float* out, const float* in, int n)
{
    __shared__ half s[64];
    const int g = blockIdx.x * 64 + threadIdx.x;
    s[threadIdx.x] = half(1.0f);
    __syncthreads();
    if (g < n)
        out[g] = float(s[threadIdx.x ^ 1]);
}

//@ right_stores_of_one_value
extern "C" __global__ void right_stores_of_one_value(float* out, const float* in, int n)
{
    __shared__ int any;
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n && in[g] > -1000.0f)
        any = 1;
    __syncthreads();
    if (g < n)
        out[n - 1] = 3.0f * any;
}

//@ stores_of_one_value_but_for_the_last
// finds: race on buffer out
extern "C" __global__ void stores_of_one_value_but_for_the_last(float* out, const float* in, int n)
{
    const int g = blockIdx.x * 64 + threadIdx.x;
    if (g < n)
        out[0] = g == n - 1 ? 2.0f : 3.0f;  // HERE
}

//@ stores_of_one_value_that_others_read
// finds: race on shared memory
extern "C" __global__ void stores_of_one_value_that_others_read(float* out, const float* in, int n)
{
    __shared__ volatile int any;
    const int g = blockIdx.x * 64 + threadIdx.x;
    any = 1;
    const int found = any;  // HERE
    if (g < n)
        out[g] = float(found);
}
