// Static and dynamic shared memory, templates with shared arrays of their own, two-dimensional blocks and grids.
constexpr int TILE = 16;

template <int N>
__device__ float reversed(float value, int i)
{
    __shared__ float line[N];
    line[i] = value;
    __syncthreads();  // the line is complete before it is read backwards
    const float result = line[N - 1 - i];
    __syncthreads();  // and read before the next call writes it
    return result;
}

// out[x][y] = in[y][x] twice reversed within the block (no change), through a padded tile
extern "C" __global__ void __launch_bounds__(TILE * TILE)
transpose(float* __restrict__ out, const float* __restrict__ in, int n_rows, int n_columns)
{
    __shared__ __align__(16) float tile[TILE][TILE + 1];
    extern __shared__ __align__(16) unsigned char dynamic[];
    float* const copy = reinterpret_cast<float*>(dynamic);
    const int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    const int t = threadIdx.y * TILE + threadIdx.x;
    float value = row < n_rows && column < n_columns ? in[(size_t)row * n_columns + column] : 0.0f;
    value = reversed<TILE * TILE>(reversed<TILE * TILE>(value, t), t);
    copy[t] = value;
    __syncthreads();  // copy is complete
    tile[threadIdx.y][threadIdx.x] = copy[t];
    __syncthreads();  // tile is complete
    const int out_row = blockIdx.x * TILE + threadIdx.y, out_column = blockIdx.y * TILE + threadIdx.x;
    if (out_row < n_columns && out_column < n_rows)
        out[(size_t)out_row * n_rows + out_column] = tile[threadIdx.x][threadIdx.y];
}
