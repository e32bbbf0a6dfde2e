// Phasors: each bin of a spectrum is multiplied by e^(i phi), phi = phase - pi delay (k - C/2) / C.
// Needs     part.cuh (Part), lib/thread.cuh (thread_again)
// Provides  Phasors; Phasor: put
static_assert(N_POLS * SPECTRA <= THREADS, "a thread has the phasor of one spectrum at most");

typedef float2 Phasors[N_POLS][SPECTRA];  // (-pi delay, phase in [-pi, pi]) of each spectrum

// The delay and the phase of the calling thread's spectrum. Thread pol SPECTRA + s has spectrum s of polarisation pol.
struct Phasor {
    float delay = 0.0f, phase = 0.0f;

    Phasor() = default;

    __device__ __forceinline__ Phasor(
        const Part& part, const float* __restrict__ delays, const float* __restrict__ phases)
    {
        const int thread = thread_again(), pol = thread / SPECTRA, s = thread % SPECTRA;
        if (pol >= N_POLS || !part.has(s))
            return;
        const long long at = (part.first() + s) * N_POLS + pol;
        delay = __ldg(delays + at), phase = __ldg(phases + at);
    }

    // Stores the phasor in shared memory, for all threads.
    __device__ __forceinline__ void put(Phasors& phasors) const
    {
        const int thread = thread_again(), pol = thread / SPECTRA, s = thread % SPECTRA;
        if (pol < N_POLS)
            phasors[pol][s] = reduced();
    }

private:
    __device__ __forceinline__ float2 reduced() const
    {
        const double cycles = phase * 0.15915494309189535;
        return make_float2(-3.14159265f * delay, static_cast<float>((cycles - rint(cycles)) * 6.283185307179586));
    }
};
