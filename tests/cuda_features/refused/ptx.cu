extern "C" __global__ void ptx(const float* x, float* y) {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[lane];
}
