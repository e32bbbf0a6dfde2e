__global__ void child(float* y) { y[threadIdx.x] = 1.0f; }
extern "C" __global__ void launches(const float* x, float* y) {
    child<<<1, 64>>>(y);
}
