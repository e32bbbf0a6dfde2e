// What the CUDA session launches besides the kernels under test.

// Spins for n_cycles of the SM clock and writes (cycles, nanoseconds) that really passed: the clock that the next
// kernel starts at. It also keeps the GPU busy while the host enqueues, so that no launch latency is in a sample.
extern "C" __global__ void spin(unsigned long long* passed, long long n_cycles)
{
    unsigned long long begin_ns, end_ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin_ns));
    const long long begin = clock64();
    long long now = begin;
    while (now - begin < n_cycles)
        now = clock64();
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(end_ns));
    passed[0] = now - begin;
    passed[1] = end_ns - begin_ns;
}

// Reads every word, so that the L2 holds these lines, clean, and nothing of the kernel under test.
extern "C" __global__ void read_all(const uint4* words, size_t n, unsigned* sink)
{
    unsigned sum = 0;
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n;
         i += static_cast<size_t>(gridDim.x) * blockDim.x) {
        const uint4 v = words[i];
        sum += v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x9e3779b9u)  // practically never: the store keeps the loads alive
        *sink = sum;
}

// n_steps x 16 independent float32 multiply-adds a thread: the FMA ceiling.
extern "C" __global__ void multiply_add(float* sink, int n_steps, float factor)
{
    float a[16];
#pragma unroll
    for (int i = 0; i < 16; ++i)
        a[i] = static_cast<float>(threadIdx.x + i);
    for (int step = 0; step < n_steps; ++step) {
#pragma unroll
        for (int i = 0; i < 16; ++i)
            a[i] = fmaf(a[i], factor, 1.0f);
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i)
        sum += a[i];
    if (sum == 0.5f)  // practically never: the store keeps the arithmetic alive
        *sink = sum;
}
