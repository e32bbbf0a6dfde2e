// One step of heat flow in a plate: after = before + rate * (sum of four neighbours - 4 before) + step_s * source.
// Rows lie one after the other, `width` points each. No heat passes the edge: a point there is its own neighbour.
#ifndef block_size_x // a tuner defines these; without one the file compiles as it did before
#define block_size_x 32
#define block_size_y 8
#define rows_per_thread 1
#endif

extern "C" __global__ void diffuse(float *after, const float *before, const float *source, float rate, float step_s,
                                   int width, int height)
{
    const int x = blockIdx.x * block_size_x + threadIdx.x;
#pragma unroll
    for (int i = 0; i < rows_per_thread; i++) {
        const int y = (blockIdx.y * rows_per_thread + i) * block_size_y + threadIdx.y;
        if (x >= width || y >= height)
            continue;
        const int k = y * width + x;
        const float here = before[k];
        const float left = x > 0 ? before[k - 1] : here;
        const float right = x < width - 1 ? before[k + 1] : here;
        const float above = y > 0 ? before[k - width] : here;
        const float below = y < height - 1 ? before[k + width] : here;
        after[k] = here + rate * (left + right + above + below - 4.0f * here) + step_s * source[k];
    }
}
