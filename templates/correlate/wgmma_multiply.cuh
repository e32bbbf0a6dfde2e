// Products by wgmma, of a consumer: a warpgroup with 32 later receivers, and N earlier ones.
// Needs     octet.cuh (Octet, lane_offset, load_octet, place_of), operands.cuh (plain_words, turned_words),
//           lowest.cuh (Lowest), store.cuh (Sums, put, add_shared), triangle.cuh (Block), wgmma_ring.cuh (Ring),
//           wgmma_chain.cuh (Range), wgmma_cluster.cuh (Release, Sides), lib/opaque.cuh (opaque),
//           lib/thread.cuh (thread_again), lib/tma.cuh (shared_pointer, wait),
//           lib/wgmma.cuh (begin_products, close_products, multiply, rows_of_64_bytes, wait_for_products)
// Provides  multiply_slice; skip_slice

// Returns where the row of a lane starts. A warp has polarisation a of 8 later receivers, then b of the same; in layout
// blocks both of a receiver one after the other, so that the lanes of two rows have 32 contiguous bytes of 32-bit
// results.
__device__ __forceinline__ int row_offset()
{
    const int lane = threadIdx.x % 32, matrix = lane / 8;
    return BLOCKS ? place_of(matrix % 2 * 4 + lane % 8 / 2, lane % 2 * 2 + matrix / 2) : lane_offset<false>();
}

// The lane's part of A for one product, of 32 later receivers' rows; words of the same unit serve PRODUCTS_PER_UNIT.
struct Rows {
    unsigned plain[4], turned[4];

    __device__ __forceinline__ void make(const Octet& octet, int product)
    {
#pragma unroll
        for (int pol = 0; pol < 2; ++pol) {
            unsigned words[2];
            plain_words(words, octet.words[pol], product);
            plain[pol] = words[0], plain[pol + 2] = words[1];
            turned_words(words, octet.words[pol], product);
            turned[pol] = words[0], turned[pol + 2] = words[1];
        }
    }
};

// Returns the sums of one polarisation of the earlier receivers.
template <int N>
__device__ __forceinline__ Sum (&half_of(Sum (&sums)[N], int pol))[N / 2]
{
    return *reinterpret_cast<Sum(*)[N / 2]>(sums + pol * (N / 2));
}

// Adds the products of a stage's step with N earlier receivers: real parts from plain rows, negative imaginary ones
// from turned.
template <int N>
__device__ __forceinline__ void add_product(Sum (&re)[N], Sum (&im)[N], const Rows& rows, unsigned operands, int step)
{
    constexpr int OF_B = (CONVERTS ? OPERAND : 32) / 16;  // from polarisation a to b, in the units of a description
    operands += CONVERTS ? step / 2 * 2 * OPERAND + step % 2 * 32 : step * OPERAND;
    const unsigned long long columns = rows_of_64_bytes(operands);
    begin_products();
    if constexpr (CONVERTS && N == RECEIVERS_I) {  // all rows, one after another
        multiply<2 * N>(re, rows.plain, columns);
        multiply<2 * N>(im, rows.turned, columns);
    } else {
        multiply<N>(half_of(re, 0), rows.plain, columns);
        multiply<N>(half_of(re, 1), rows.plain, columns + OF_B);
        multiply<N>(half_of(im, 0), rows.turned, columns);
        multiply<N>(half_of(im, 1), rows.turned, columns + OF_B);
    }
    close_products();
}

__device__ __forceinline__ void wait_for_stage(const Ring& ring)
{
    wait(ring.copied(), ring.parity);
    if constexpr (CONVERTS)
        wait(ring.converted(), ring.parity);
}

// Adds the products of all units of a slice. A stage is released when the first products of the next one are under way.
template <int N>
__device__ __forceinline__ void add_slice(
    Sum (&re)[N], Sum (&im)[N], Ring& ring, int n_units, unsigned row, int operand, const Release& release,
    Lowest& lowest)
{
    Rows rows[BUFFERS];
#pragma unroll 1
    for (int stage = 0; stage < n_units / UNITS_PER_STAGE; ++stage) {
        wait_for_stage(ring);
        // Shuffled: then the compiler knows it to be the same in all lanes, and describes operands in uniform registers
        const unsigned operands = __shfl_sync(0xffffffffu, ring.address() + operand, 0);
        Octet octet;
#pragma unroll
        for (int step = 0; step < PRODUCTS_PER_STAGE; ++step) {
            if (step % PRODUCTS_PER_UNIT == 0) {
                octet = load_octet<false>(shared_pointer(ring.address() + row + step / PRODUCTS_PER_UNIT * UNIT));
                lowest.add(octet);
            }
            rows[step % BUFFERS].make(octet, step % PRODUCTS_PER_UNIT);
            add_product<N>(re, im, rows[step % BUFFERS], operands, step);
            wait_for_products<IN_FLIGHT>();
            if (step == IN_FLIGHT - 1 && stage > 0)
                release(ring.released_before());
        }
        ring.advance();
    }
    wait_for_products<0>();
    if (n_units >= UNITS_PER_STAGE)
        release(ring.released_before());
    if (n_units % UNITS_PER_STAGE == 0)
        return;
    wait_for_stage(ring);  // one that is full in part
#pragma unroll 1
    for (int unit = 0; unit < n_units % UNITS_PER_STAGE; ++unit) {
        const Octet octet = load_octet<false>(shared_pointer(ring.address() + row + unit * UNIT));
        lowest.add(octet);
#pragma unroll
        for (int product = 0; product < PRODUCTS_PER_UNIT; ++product) {
            rows[0].make(octet, product);
            add_product<N>(re, im, rows[0], ring.address() + operand, unit * PRODUCTS_PER_UNIT + product);
            wait_for_products<0>();
        }
    }
    release(ring.released());
    ring.advance();
}

// Returns whether the rows of a tile are earlier receivers, and its columns the last ones.
template <int N>
__device__ __forceinline__ bool is_above(const Block& block)
{
    return N == LAST_WIDTH && block.first_j < block.first_i;
}

// Stores the sums of a tile above the diagonal, whose rows are in the same order in both layouts: polarisation a of 8
// receivers, then b.
template <int N>
__device__ __forceinline__ void store_columns(
    Result* results, const Sum (&re)[N], const Sum (&im)[N], const Block& block, int consumer)
{
    const int thread = thread_again();
    const int lane = thread % 32, first_i = block.first_j + consumer * 32 + thread / 32 % 4 * 8;
#pragma unroll
    for (int q = 0; q < 2; ++q) {
        Result* of_i = results + (first_i + lane / 4) * 8 + q * 4;
#pragma unroll
        for (int octet = 0; octet < N / 8; ++octet) {
            constexpr int TOGETHER = 2;  // columns of an octet
            Sums<Sum, 2> both[TOGETHER];  // polarisations of i
            Result* to[TOGETHER];
            bool valid[TOGETHER];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
#pragma unroll
                for (int p = 0; p < 2; ++p) {
                    const int place = q * (N / 2) + octet * 4 + p * 2 + k;
                    both[k].re[p] = re[place], both[k].im[p] = im[place];
                }
                const int j = block.first_i + octet * 8 + lane % 4 * 2 + k;
                to[k] = of_i + static_cast<long long>(j * (j + 1) / 2) * 8, valid[k] = j < N_RECEIVERS;
            }
            if constexpr (ATOMIC) {
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k) {
                    Sum numbers[4] = {both[k].re[0], both[k].im[0], both[k].re[1], both[k].im[1]};
                    const int first = block.first_i + octet * 8 + k;
                    add_shared(of_i, numbers, [&](int m) {
                        const int j = opaque(first + m * 2);  // else all places are computed first, and spilled
                        return j < N_RECEIVERS ? j * (j + 1) / 2 * 8 : -1;
                    });
                }
            } else {
                put(to, both, valid);
            }
        }
    }
}

// Makes the results of a slice.
template <int N>
__device__ __forceinline__ void multiply_slice(
    Result* results, Ring& ring, const Block& block, const Sides& sides, const Range& range, int consumer,
    const Release& release, Lowest& lowest)
{
    Sum re[N], im[N];  // of polarisation a of the earlier receivers, then b
#pragma unroll
    for (int i = 0; i < N; ++i)
        re[i] = im[i] = 0;
    {
        const int first = consumer * 32 + threadIdx.x / 32 % 4 * 8;  // of the warp's receivers
        const int offset = is_above<N>(block) ? lane_offset<false>() : row_offset();
        const unsigned row = sides.later + first * UNIT_BYTES + offset;
        const int operand = CONVERTS ? OPERAND_AT : sides.earlier;  // its place in a stage
        add_slice<N>(re, im, ring, range.n_units, row, operand, release, lowest);
    }
    if (!OVERWRITES && range.n_units == 0)
        return;
    if (is_above<N>(block)) {
        store_columns<N>(results, re, im, block, consumer);
        return;
    }
    const int thread = thread_again();  // so that nothing of it lives in a register meanwhile
    const int lane = thread % 32, first_j = block.first_j + consumer * 32 + thread / 32 % 4 * 8;
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // rows 0 to 7, and 8 to 15
        const int j = first_j + (BLOCKS ? half * 4 + lane / 8 : lane / 4), q = BLOCKS ? lane / 4 % 2 : half;
        Result* of_j = results + static_cast<long long>(j * (j + 1) / 2) * 8 + q * 4;
#pragma unroll
        for (int octet = 0; octet < N / 8; octet += 2) {
            constexpr int TOGETHER = 4;  // columns of two octets
            Sums<Sum, 2> both[TOGETHER];  // polarisations of i
            Result* to[TOGETHER];
            bool valid[TOGETHER];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) {
                const int i = block.first_i + (octet + k / 2) * 8 + lane % 4 * 2 + k % 2;
#pragma unroll
                for (int p = 0; p < 2; ++p) {
                    const int place = p * (N / 2) + (octet + k / 2) * 4 + half * 2 + k % 2;
                    both[k].re[p] = re[place], both[k].im[p] = -im[place];
                }
                to[k] = of_j + i * 8, valid[k] = j < N_RECEIVERS && i <= j;
            }
            if constexpr (ATOMIC) {
#pragma unroll
                for (int k = 0; k < TOGETHER; ++k) {
                    Sum numbers[4] = {both[k].re[0], both[k].im[0], both[k].re[1], both[k].im[1]};
                    const int first = block.first_i + (octet + k / 2) * 8 + k % 2;
                    add_shared(of_j, numbers, [&](int m) {
                        return j < N_RECEIVERS && first + m * 2 <= j ? (first + m * 2) * 8 : -1;
                    });
                }
            } else {
                put(to, both, valid);
            }
        }
    }
}

// Stands for multiply_slice() where all receivers are past the last one: it keeps the ring going.
__device__ __forceinline__ void skip_slice(Ring& ring, const Range& range, const Release& release)
{
#pragma unroll 1
    for (int unit = 0; unit < range.n_units; unit += UNITS_PER_STAGE) {
        wait(ring.copied(), ring.parity);
        release(ring.released());
        ring.advance();
    }
}
