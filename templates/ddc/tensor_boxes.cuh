// Copies a warp's samples to shared memory by the copy engine of sm_90: all rows of a stage at once, as a box of an
// array whose rows are ROW_BYTES apart, and longer than that. Where a box could reach out of the buffer, lanes copy
// pieces, as in ddc/tensor_copy.cuh; and on the host, which looks for races only where no barriers in shared memory
// are used.
constexpr int BOX_BYTES = ROWS * PITCH * 16;
static_assert(BOX_BYTES % 128 == 0, "boxes start at multiples of 128 bytes");

// 0, but not before these words have been loaded: __syncwarp() does not wait for loads that are under way, and the copy
// engine does not queue behind them.
template <class Words>
__device__ __forceinline__ int zero_behind(const Words& words)
{
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(words) / sizeof(any)); ++i)
        any |= reinterpret_cast<const unsigned*>(&words)[i];
    return static_cast<int>(any & blockIdx.z);  // which is 0 in all launches, and the compiler cannot tell
}

struct BoxCopier {
    Copier pieces;
{% if two_places %}
    static constexpr long long BOX_PITCH = 2 * Copier::ROW_BYTES;  // from row to row of a box: of even rows, or of odd
    const bool leads;  // two lanes, that have boxes copied
    const int odd;  // the second one: of odd rows
    const int offset;  // of such rows' first stage, from a multiple of 16 bytes
{% else %}
    const bool leads;  // the lane that has boxes copied
{% endif %}
    const TensorMap* const map;
    const unsigned to;  // the first stage
    const unsigned barriers;  // 8 bytes for each stage: over when it is there
    const int y;  // of the boxes: their first row
    const int x;  // and where in it the first one starts, in words

    // `first_byte`: of the warp's first row.
    __device__ __forceinline__ BoxCopier(
        int lane, uint4 (*stages)[ROWS][PITCH], unsigned long long* barriers, const TensorMap& map,
        const unsigned char* samples, long long n_bytes, long long first_byte)
{% if two_places %}
        : pieces(lane, stages, samples, n_bytes, first_byte), leads(lane < 2), odd(lane % 2),
          offset(Copier::place_of_row(first_byte, odd)), map(&map),
          to(shared_address(stages) + odd * (BOX_BYTES / 2)), barriers(shared_address(barriers)),
          y(static_cast<int>((first_byte + odd * Copier::ROW_BYTES & ~15ll) / BOX_PITCH)),
          x(static_cast<int>((first_byte + odd * Copier::ROW_BYTES & ~15ll) % BOX_PITCH / 4) - odd * (EARLIER / 4))
{% else %}
        : pieces(lane, stages, samples, n_bytes, first_byte), leads(lane == 0), map(&map), to(shared_address(stages)),
          barriers(shared_address(barriers)), y(static_cast<int>((first_byte & ~15ll) / Copier::ROW_BYTES)),
          x(static_cast<int>((first_byte & ~15ll) % Copier::ROW_BYTES / 4))
{% endif %}
    {
#ifndef AUTOTUNE_HOST
        if (leads{{ " && odd == 0" if two_places }}) {
#pragma unroll
            for (int i = 0; i < STAGES; ++i)
                init_barrier(this->barriers + 8 * i, {{ 2 if two_places else 1 }});
            publish_barriers();
        }
        __syncwarp();  // before any lane waits at one
#endif
    }

    __device__ __forceinline__ bool by_boxes() const
    {
#ifdef AUTOTUNE_HOST
        return false;
#else
        return pieces.is_inside;
#endif
    }

    // The first stages, and a group of copies for each, by the engine too: all warps wait for the weights alike.
    __device__ __forceinline__ void begin()
    {
#pragma unroll 1
        for (int i = 0; i < STAGES; ++i) {
            next_stage(0);
            if (by_boxes())
                close_group();
        }
    }

    // `zero`: behind all that was loaded from its place.
    __device__ __forceinline__ void next_stage(int zero)
    {
        if (!by_boxes()) {
            pieces.next_stage();
            return;
        }
#ifndef AUTOTUNE_HOST
        if (pieces.stage < TASK_STAGES && leads) {
            const unsigned barrier = barriers + 8 * pieces.slot;
{% if two_places %}
            arrive_and_expect(barrier, BOX_BYTES / 2);
            copy_box(to + pieces.slot * BOX_BYTES, map, barrier, x + pieces.start_of_stage(offset) / 4 + zero, y);
{% else %}
            arrive_and_expect(barrier, BOX_BYTES);
            copy_box(to + pieces.slot * BOX_BYTES, map, barrier, x + pieces.start_of_stage() / 4 + zero, y);
{% endif %}
        }
#endif
        ++pieces.stage;
        pieces.slot = pieces.slot + 1 < STAGES ? pieces.slot + 1 : 0;
    }

    // For the stages that begin() has begun, none of which is read.
    __device__ __forceinline__ void wait_for_begun() const
    {
        wait_for_groups<0>();
#ifndef AUTOTUNE_HOST
        for (int i = 0; i < (STAGES < TASK_STAGES ? STAGES : TASK_STAGES) && by_boxes(); ++i)
            wait(barriers + 8 * i, 0);
#endif
    }

    // For the stage at `slot`, the oldest under way; parity: of the turns through all slots before it.
    __device__ __forceinline__ void wait_for_stage(int slot, unsigned parity)
    {
        if (!by_boxes()) {
            pieces.wait_for_stage();
            return;
        }
#ifndef AUTOTUNE_HOST
        wait(barriers + 8 * slot, parity);
#endif
        pieces.read_next();
    }
};
