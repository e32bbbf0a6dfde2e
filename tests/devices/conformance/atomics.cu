// Counters in global and shared memory, from several blocks.
extern "C" __global__ void atomics(int* ints, unsigned long long* wides, float* floats, int* histogram)
{
    __shared__ int bins[8];
    const int t = threadIdx.x;
    if (t < 8)
        bins[t] = 0;
    __syncthreads();  // the bins are empty before anyone counts
    atomicAdd(&bins[(t * t) % 8], 1);
    atomicAdd(&ints[0], 1);
    atomicMax(&ints[1], (t * 7) % 64);
    atomicMin(&ints[2], -t);
    atomicCAS(&ints[3], 0, 1);
    atomicOr(&ints[4], 1 << (t % 32));
    atomicExch(&ints[5], 77);
    atomicAdd(wides, 1ull << 33);
    atomicAdd(floats, 0.5f);
    __syncthreads();  // every count is in before it is read
    if (t < 8)
        atomicAdd(&histogram[t], bins[t]);
}
