// How fast tensor cores multiply, by mma.sync: from compute capability 8.0 on. Launched with whole warps; the sums of
// several products are independent, and nothing but products is in the loop.
constexpr int CHAINS = 8;  // independent sums of a warp

extern "C" __global__ void multiply_halves(float* sink, int n_steps)  // 16 x 8 x 16 each
{
    float sums[CHAINS][4] = {};
    const unsigned a = threadIdx.x, b = threadIdx.x;
    for (int step = 0; step < n_steps; ++step)
#pragma unroll
        for (int i = 0; i < CHAINS; ++i)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, "
                         "{%5, %5}, {%0, %1, %2, %3};"
                         : "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]), "+f"(sums[i][3])
                         : "r"(a), "r"(b));
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i)
        sum += sums[i][0];
    if (sum == 0.5f)  // practically never
        *sink = sum;
}

extern "C" __global__ void multiply_bytes(float* sink, int n_steps)  // 16 x 8 x 32 each
{
    int sums[CHAINS][4] = {};
    const unsigned a = threadIdx.x, b = threadIdx.x;
    for (int step = 0; step < n_steps; ++step)
#pragma unroll
        for (int i = 0; i < CHAINS; ++i)
            asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, "
                         "{%5, %5}, {%0, %1, %2, %3};"
                         : "+r"(sums[i][0]), "+r"(sums[i][1]), "+r"(sums[i][2]), "+r"(sums[i][3])
                         : "r"(a), "r"(b));
    int sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i)
        sum += sums[i][0];
    if (sum == 0x12345679)  // practically never
        *sink = static_cast<float>(sum);
}
