// __syncthreads and its voting relatives: one barrier for the block, counted; and the block's other barriers, by number.
#include "runtime.hpp"

namespace cuda_host {

static unsigned n_arrived, n_true;
static int result;
static Vote vote;
static Site first_site;

static const char* name_of(Vote v) {
    static const char* const names[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or"};
    return names[int(v)];
}

// Of some warps: as many threads as each of them says.
struct NamedBarrier {
    unsigned n_expected, n_arrived;
    std::vector<unsigned> waiting;  // threads
};

static NamedBarrier named_barriers[max_named];

void reset_barrier() { n_arrived = n_true = 0; }

void reset_named_barriers() {
    for (NamedBarrier& barrier : named_barriers) barrier = {};
}

static void release() {
    const bool all = n_true == n_arrived, any = n_true > 0;
    result = vote == Vote::count ? int(n_true) : vote == Vote::all ? all : any;
    reset_barrier();
    if (!suspicion.empty()) fail("%s", suspicion.c_str());
    checker_block_barrier();
    const bool descending = launch.options.schedule == Schedule::descending;
    for (unsigned k = 0; k < launch.n_threads; k++) {
        const unsigned i = descending ? launch.n_threads - 1 - k : k;
        if (thread(i).state == State::at_barrier) make_ready(i);
    }
}

#define RETURNS \
    "CUDA lets the others go on from compute capability 7.0 on, and left it open before; to allow it for this kernel, " \
    "define AUTOTUNE_EARLY_RETURNS: -D AUTOTUNE_EARLY_RETURNS=1"

void barrier_lost_thread() {
    if (!n_arrived || n_arrived != n_alive()) return;
    if (!(launch.info.allowed & allows_returned))
        fail("returned while the other %u threads wait at %s %s (%s)", n_arrived, name_of(vote), text(first_site).c_str(),
             RETURNS);
    release();
}

}  // namespace cuda_host

using namespace cuda_host;

extern "C" int cuda_host_barrier(Vote kind, int predicate, Site site) {
    Thread& me = *current;
    if (n_arrived == 0) {
        vote = kind;
        first_site = site;
    } else if (vote != kind || !same(site, first_site)) {
        fail("divergent barrier: this thread is at %s %s, %u others wait at %s %s", name_of(kind), text(site).c_str(),
             n_arrived, name_of(vote), text(first_site).c_str());
    }
    if (n_alive() != launch.n_threads && !(launch.info.allowed & allows_returned))
        fail("%s %s, but %u threads of the block have returned (%s)", name_of(kind), text(site).c_str(),
             launch.n_threads - n_alive(), RETURNS);
    n_arrived++;
    n_true += predicate != 0;
    me.state = State::at_barrier;
    me.waits_at = name_of(kind);
    me.site = site;
    if (n_arrived == n_alive()) release();
    yield();
    return result;
}

extern "C" void cuda_host_named_barrier(unsigned number, unsigned n_threads, int waits, Site site) {
    Thread& me = *current;
    const char* const name = waits ? "bar.sync" : "bar.arrive";
    if (number == 0 || number >= max_named)
        fail("%s %u %s: barriers 1 to %u are there besides that of __syncthreads", name, number, text(site).c_str(),
             max_named - 1);
    if (n_threads == 0 || n_threads % warp_size || n_threads > launch.n_threads)
        fail("%s %u %s: %u threads are not whole warps of the block", name, number, text(site).c_str(), n_threads);
    NamedBarrier& barrier = named_barriers[number];
    if (barrier.n_arrived && barrier.n_expected != n_threads)
        fail("%s %u %s: it is of %u threads here, and of %u for those that are at it", name, number, text(site).c_str(),
             n_threads, barrier.n_expected);
    barrier.n_expected = n_threads;
    barrier.n_arrived++;
    checker_arrival(number, me.linear / warp_size);
    if (waits) barrier.waiting.push_back(me.linear);
    if (barrier.n_arrived == n_threads) {
        unsigned warps = 0;
        for (unsigned linear : barrier.waiting) {
            warps |= 1u << linear / warp_size;
            make_ready(linear);
        }
        barrier = {};
        checker_named_barrier(number, warps);
        if (waits) yield();
    } else if (waits) {
        me.state = State::at_named_barrier;
        me.waits_at = name;
        me.site = site;
        yield();
    }
}
