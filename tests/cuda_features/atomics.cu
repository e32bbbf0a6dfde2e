// Atomic functions. Each kernel: 2 blocks of 64 threads; x has 128 floats, and y has 128 zeros.

extern "C" __global__ void atomic_add(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&y[i % 4], x[i]);
}

extern "C" __global__ void atomic_add_of_doubles(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ double sum;
    if (threadIdx.x == 0) sum = 0.0;
    __syncthreads();
    atomicAdd(&sum, double(x[i]));
    __syncthreads();
    y[i] = float(sum);
}

extern "C" __global__ void atomic_cas(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned* const address = reinterpret_cast<unsigned*>(&y[i % 2]);
    unsigned old = atomicAdd(address, 0u), assumed;
    do {
        assumed = old;
        old = atomicCAS(address, assumed, __float_as_uint(fmaxf(__uint_as_float(assumed), x[i])));
    } while (assumed != old);
}

extern "C" __global__ void atomic_min_max(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ int lowest;
    __shared__ unsigned highest;
    if (threadIdx.x == 0) lowest = 1000, highest = 0;
    __syncthreads();
    atomicMin(&lowest, int(x[i]));
    atomicMax(&highest, unsigned(x[i]));
    __syncthreads();
    y[i] = float(lowest) + 0.5f * float(highest);
}

extern "C" __global__ void atomic_bits(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned all, any, parity;
    if (threadIdx.x == 0) all = 255, any = 0, parity = 0;
    __syncthreads();
    atomicAnd(&all, unsigned(x[i]));
    atomicOr(&any, unsigned(x[i]));
    atomicXor(&parity, unsigned(x[i]));
    __syncthreads();
    y[i] = float(all + 256 * any + 65536 * parity);
}

extern "C" __global__ void atomic_exchange(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = atomicExch(&y[i], x[i]) + x[i];
}

extern "C" __global__ void atomic_inc_dec(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned up, down;
    if (threadIdx.x == 0) up = down = 0;
    __syncthreads();
    atomicInc(&up, 9);
    atomicDec(&down, 9);
    __syncthreads();
    y[i] = x[i] + float(up + 16 * down);
}

extern "C" __global__ void atomic_64_bits(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ unsigned long long sum;
    if (threadIdx.x == 0) sum = 1ull << 32;
    __syncthreads();
    atomicAdd(&sum, (unsigned long long)x[i]);
    __syncthreads();
    y[i] = float(sum - (1ull << 32));
}

extern "C" __global__ void atomic_of_a_block(const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd_block(&sum, int(x[i]));
    __syncthreads();
    y[i] = float(sum);
}
