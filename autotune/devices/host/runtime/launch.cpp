// One launch: the driver's entry point.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>

#include <utility>

#include "runtime.hpp"

namespace cuda_host {

static void poison(char* start, size_t n_bytes) {
    if (launch.options.poison != random_poison) {
        memset(start, launch.options.poison, n_bytes);
        return;
    }
    for (size_t i = 0; i < n_bytes; i += sizeof(uint64_t)) {
        const uint64_t noise = random_number();
        memcpy(start + i, &noise, n_bytes - i < sizeof noise ? n_bytes - i : sizeof noise);
    }
}

// The blocks in the order of `options.block_order`; empty where that is their own.
static std::vector<unsigned> block_order(unsigned n_blocks) {
    std::vector<unsigned> order;
    if (launch.options.block_order == Schedule::ascending) return order;
    order.resize(n_blocks);
    for (unsigned i = 0; i < n_blocks; i++) order[i] = n_blocks - 1 - i;
    if (launch.options.block_order == Schedule::random)
        for (unsigned i = n_blocks; i > 1; i--) std::swap(order[i - 1], order[random_number() % i]);
    return order;
}

// ---------------------------------------------------------------- processes that a kernel forks
static pid_t launching;  // the process that has a launch under way; 0: none
static pid_t forking;

static void note_forking() { forking = getpid(); }

static void end_with_parent() {
    if (!launching) return;
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != forking) _exit(1);  // it ended before the system was asked to tell
}

__attribute__((constructor)) static void watch_forks() { pthread_atfork(note_forking, nullptr, end_with_parent); }

// The launch is over in the process that began it; in a copy of that process there is nothing to go on with.
static void end_launch() {
    if (getpid() != launching) _exit(0);
    launching = 0;
}

static void run_grid() {
    const unsigned *grid = launch.options.grid, *block = launch.options.block;
    cuda_host_environment.block_dim = dim3(block[0], block[1], block[2]);
    cuda_host_environment.grid_dim = dim3(grid[0], grid[1], grid[2]);
    const unsigned n_blocks = grid[0] * grid[1] * grid[2];
    const std::vector<unsigned> order = block_order(n_blocks);
    for (unsigned k = 0; k < n_blocks; k++) {
        const unsigned b = order.empty() ? k : order[k];
        launch.block_number = b;
        cuda_host_environment.block = {b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]};
        for (const Range& range : launch.ranges)
            if (range.kind == 's') poison(range.start, range.n_bytes);
        checker_begin_block();
        if (!run_block()) return;
    }
}

}  // namespace cuda_host

using namespace cuda_host;

extern "C" {

void* cuda_host_dynamic_shared() { return cuda_host_environment.dynamic_shared; }

const char* cuda_host_error() { return launch.error.c_str(); }

// 0: ran to the end. 1 or, without enough memory, 2: cuda_host_error() says what went wrong. The driver has checked the geometry.
int cuda_host_launch(const char* kernel, const KernelInfo* info, void** arguments, const Options* options,
                     const Range* ranges, unsigned n_ranges) {
    launch.kernel = kernel;
    launch.info = *info;
    launch.arguments = arguments;
    launch.options = *options;
    launch.ranges.assign(ranges, ranges + n_ranges);
    launch.n_threads = options->block[0] * options->block[1] * options->block[2];
    launch.random_state = 0x9e3779b97f4a7c15u * (uint64_t(options->seed) + 1) | 1;
    launch.failed = false;
    launch.error.clear();
    current = nullptr;
    cuda_host_environment.dynamic_shared = nullptr;
    if (!make_threads(launch.n_threads) ||
        posix_memalign(reinterpret_cast<void**>(&cuda_host_environment.dynamic_shared), 1024, options->shared_bytes + 1) != 0) {
        launch.error = "no memory for the threads of a block";
        return 2;
    }
    launch.ranges.push_back({"the dynamic array", cuda_host_environment.dynamic_shared, options->shared_bytes, 's', 1});
    launching = getpid();
    const bool has_memory = checker_begin();
    if (has_memory) run_grid();
    end_launch();
    checker_end();
    free(cuda_host_environment.dynamic_shared);
    return has_memory ? launch.failed : 2;
}

}
