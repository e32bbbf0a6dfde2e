extern "C" __global__ void textures(const float* x, float* y, cudaTextureObject_t texture) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] + tex1Dfetch<float>(texture, i);
}
