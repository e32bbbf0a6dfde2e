// __syncthreads and its voting relatives: one barrier for the block, counted.
#include <string.h>

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

static bool same(Site a, Site b) { return a.line == b.line && (a.file == b.file || !strcmp(a.file, b.file)); }

void reset_barrier() { n_arrived = n_true = 0; }

static void release() {
    const bool all = n_true == n_arrived, any = n_true > 0;
    result = vote == Vote::count ? int(n_true) : vote == Vote::all ? all : any;
    reset_barrier();
    checker_block_barrier();
    const bool descending = launch.options.schedule == Schedule::descending;
    for (unsigned k = 0; k < launch.n_threads; k++) {
        const unsigned i = descending ? launch.n_threads - 1 - k : k;
        if (thread(i).state == State::at_barrier) make_ready(i);
    }
}

void barrier_lost_thread() {
    if (n_arrived && n_arrived == n_alive())
        fail("returned while the other %u threads wait at %s %s: every thread of the block must reach it", n_arrived,
             name_of(vote), text(first_site).c_str());
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
    if (n_alive() != launch.n_threads)
        fail("%s %s, but %u threads of the block have returned: every thread of the block must reach it", name_of(kind),
             text(site).c_str(), launch.n_threads - n_alive());
    n_arrived++;
    n_true += predicate != 0;
    me.state = State::at_barrier;
    me.waits_at = name_of(kind);
    me.site = site;
    if (n_arrived == n_alive()) release();
    yield();
    return result;
}
