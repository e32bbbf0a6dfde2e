// The only launch after the tables: a block processes one part at a time (all points, all polarisations), and takes the
// next unclaimed part from a counter in global memory.
//   grid = (at least the number of blocks that run at once, or the number of parts; blocks without a part do nothing)
// While a block transforms a part, it reads the starts, delays and phases of the following part. So it goes on without
// waiting for them, and if threads are PAIRED, without a barrier.
// Needs     part.cuh (Part, part_at), stream.cuh (Starts, Stream), power.cuh (add_sums),
//           row.cuh (Rows, row_of, transform_row), phasor.cuh (Phasors, Phasor), finish.cuh (FirstVoltages, Finish),
//           lib/thread.cuh (thread_again), lib/vector.cuh (ceil_div)
// Provides  channelise
struct Plan {  // a part, with the phasors and the starts of its spectra
    Part part;
    Phasors phasors;
    Starts starts[N_POLS];
};

struct Shared {
    alignas(16) Rows z;
    alignas(16) Plan plans[2];  // those of the part at hand and of the following part
    alignas(16) unsigned long long sums[N_POLS][THREADS / 32];
    alignas(16) unsigned ticket;  // number of the following part
{% if config.TWIDDLES == "shared" %}
    alignas(16) float2 twiddles[N_TWIDDLES];
{% endif %}
{% if shape.keeps_in_shared %}
    alignas(16) FirstVoltages<THREADS> first_voltages;
{% endif %}
};
static_assert(sizeof(Shared) == {{ shape.shared_bytes }}, "what the definition asks for at launch");

extern "C" __global__ void __launch_bounds__(THREADS, {{ config.MIN_BLOCKS }}) channelise(
    unsigned char* __restrict__ voltages, unsigned* __restrict__ saturated, const float* __restrict__ delays,
    const float* __restrict__ phases, const float2* __restrict__ twiddles, const float2* __restrict__ splits,
    const float4* __restrict__ polar, long long first_spectrum, long long n_spectra, long long n_times,
{% if problem.sample_bits != 64 %}
    unsigned long long* __restrict__ total_power,
{% endif %}
    const unsigned char* __restrict__ samples, const float* __restrict__ weights, const long long* __restrict__ offsets,
    long long row_bytes, unsigned* __restrict__ n_taken)
{
    extern __shared__ uint4 dynamic_shared[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
{% if config.TWIDDLES == "shared" %}
    for (int i = threadIdx.x; i < N_TWIDDLES; i += THREADS)
        shared.twiddles[i] = twiddles[i];
{% endif %}
    const Stream stream = {samples, weights, offsets, row_bytes, 0};
    constexpr int PLANNERS = ceil_div(N_POLS * SPECTRA, 32) * 32;  // threads, one for each spectrum and polarisation
    const auto part_of_ticket = [&] { return part_at(shared.ticket, 0, SPECTRA, first_spectrum, n_spectra); };
    const auto start_in = [&](const Part& part) {
        const int thread = thread_again(), pol = thread / SPECTRA;
        return stream.own_start(part, pol, thread % SPECTRA, pol < N_POLS);
    };
    const auto put_plan = [&](Plan& plan, const Part& part, long long start, const Phasor& phasor) {
        const int thread = thread_again(), pol = thread / SPECTRA;
        if (thread == 0)
            plan.part = part;
        stream.put_starts(plan.starts[pol < N_POLS ? pol : 0], pol, thread % SPECTRA, pol < N_POLS, start);
        phasor.put(plan.phasors);
    };
    if (threadIdx.x == 0)
        shared.ticket = atomicAdd(n_taken, 1u);
    __syncthreads();  // the ticket is stored
    if (threadIdx.x < PLANNERS) {
        const Part part = part_of_ticket();
        put_plan(shared.plans[0], part, start_in(part), Phasor(part, delays, phases));
    }
    __syncthreads();  // the first plan, and the twiddles, are complete

{% if shape.keeps_in_shared %}
    FirstVoltages<THREADS>& first_voltages = shared.first_voltages;
{% else %}
    FirstVoltages<1> first_voltages;
{% endif %}
#pragma unroll 1
    for (int slot = 0; shared.plans[slot].part.has_any(); slot = 1 - slot) {
        const Plan& plan = shared.plans[slot];
        Plan& following = shared.plans[1 - slot];
#pragma unroll 1
        for (int round = 0; round < ROUNDS; ++round) {
            const bool takes = round == 0 && threadIdx.x == 0, plans = round == 0 && threadIdx.x < PLANNERS;
            const unsigned ticket = takes ? atomicAdd(n_taken, 1u) : 0;  // needed after the filter
            unsigned long long power[POLS_AT_ONCE] = {};
            stream.filter(
                power, round * POLS_AT_ONCE, plan.starts + round * POLS_AT_ONCE,
                [&](int p) { return [&, p](int s, int n, float2 sum) { shared.z[row_of(0, p, s)][n] = sum; }; });
            if (takes)
                shared.ticket = ticket;
{% if problem.sample_bits != 64 %}
            add_sums<THREADS>(  // a barrier: z is complete
                total_power + round * POLS_AT_ONCE, shared.sums + round * POLS_AT_ONCE, power);
{% else %}
            __syncthreads();  // z is complete
{% endif %}
{% if config.SAMPLES == "ahead" %}
            // Fetches the samples that are filtered next, if they are known: those of the second polarisation or, from
            // round 1 on, of the next part.
            if (round + 1 < ROUNDS)
                stream.fetch(round + 1, plan.starts[round + 1].of[0]);
            else if (ROUNDS > 1)
                stream.fetch(0, following.starts[0].of[0]);
{% endif %}
            long long start = -1;
            Phasor phasor;
            if (plans) {  // both are needed after the transforms
                const Part part = part_of_ticket();
                start = start_in(part);
                phasor = Phasor(part, delays, phases);
            }
#pragma unroll 1
            for (int unit = threadIdx.x; unit < N_ROWS * RADIX_2; unit += THREADS) {
                float2* slice = shared.z[unit / RADIX_2];
                transform_row(
                    slice, unit % RADIX_2, true, [&](int at, int n) { return slice[at + n]; },
                    [&](int) { return make_float2(1.0f, 0.0f); },
{% if config.TWIDDLES == "shared" %}
                    [&](int i) { return shared.twiddles[i]; });
{% else %}
                    [&](int i) { return __ldg(twiddles + i); });
{% endif %}
            }
            if (plans)
                put_plan(following, part_of_ticket(), start, phasor);
            Finish finish(splits, polar, 0, round, thread_again());
            __syncthreads();  // the bins of all rows, and the following plan, are complete
{% if config.SAMPLES == "ahead" %}
            if (ROUNDS == 1)
                for (int pol = 0; pol < N_POLS; ++pol)
                    stream.fetch(pol, following.starts[pol].of[0]);
{% endif %}
            finish.store(shared.z, plan.phasors, {voltages, n_times, plan.part}, saturated, first_voltages);
            if (!PAIRED)
                __syncthreads();  // z is free; if PAIRED, a thread overwrites only values that it has read itself
        }
    }
}
