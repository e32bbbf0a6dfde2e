// Stores COUNT consecutive outputs from number `first` of a row on, except those past the end of the row.
template <int COUNT>
__device__ __forceinline__ void store_run(float2* row, long long first, long long n_out, const float2* outputs)
{
    const bool pairs_aligned = reinterpret_cast<unsigned long long>(row + first) % 16 == 0;  // rows may have any length
    if (COUNT % 2 == 0 && pairs_aligned && first + COUNT <= n_out) {
#pragma unroll
        for (int i = 0; i < COUNT / 2; ++i)
            reinterpret_cast<float4*>(row + first)[i] =
                make_float4(outputs[2 * i].x, outputs[2 * i].y, outputs[2 * i + 1].x, outputs[2 * i + 1].y);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (first + i < n_out)
                row[first + i] = outputs[i];
    }
}
