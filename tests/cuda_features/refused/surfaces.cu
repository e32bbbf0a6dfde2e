extern "C" __global__ void surfaces(const float* x, float* y, cudaSurfaceObject_t surface) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + surf1Dread<float>(surface, 4 * i);
}
