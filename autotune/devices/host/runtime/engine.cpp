// The tensor memory accelerator, and the barriers in shared memory (mbarrier) that copies and threads arrive at. A copy
// may read and write at any time from its issue until its barrier's phase is over, and copies may end in any order: here
// each ends when the seed has it, one at a time.
#include <string.h>

#include <map>

#include "runtime.hpp"

namespace cuda_host {

struct Mbarrier {
    unsigned n_expected, n_missing;  // arrivals, of each phase and of this one
    long n_bytes;                    // that this phase still waits for
    unsigned phase;
    std::vector<unsigned> waiting;  // threads
};

struct Copy {
    unsigned to, barrier;
    BoxMap map;
    int at[max_axes];
    Site site;
};

static std::map<unsigned, Mbarrier> barriers;  // by address
static std::vector<Copy> under_way;

void reset_engine() {
    barriers.clear();
    under_way.clear();
}

static Mbarrier& barrier_at(unsigned address, const char* name, Site site) {
    const auto found = barriers.find(address);
    if (found == barriers.end())
        fail("%s %s: the barrier at shared address %u was never initialised", name, text(site).c_str(), address);
    return found->second;
}

static void end_phase_if_complete(Mbarrier& barrier) {
    if (barrier.n_missing || barrier.n_bytes) return;
    barrier.phase++;
    barrier.n_missing = barrier.n_expected;
    for (unsigned linear : barrier.waiting) make_ready(linear);
    barrier.waiting.clear();
}

// Pieces of 16 bytes change places with the number of their row of `swizzle` bytes.
static unsigned swizzled(unsigned address, unsigned swizzle) {
    return swizzle ? address ^ (address >> 3 & (swizzle - 16)) : address;
}

static void deliver(const Copy& copy) {
    const BoxMap& map = copy.map;
    unsigned n_rows = 1;
    for (unsigned axis = 1; axis < map.n_axes; axis++) n_rows *= map.box[axis];
    const unsigned row_bytes = map.box[0] * map.element;
    char* const shared = cuda_host_environment.dynamic_shared;
    for (unsigned row = 0; row < n_rows; row++) {
        long long offset = 0;
        bool inside = true;
        unsigned rest = row;
        for (unsigned axis = 1; axis < map.n_axes; axis++) {
            const long long at = copy.at[axis] + (long long)(rest % map.box[axis]);
            rest /= map.box[axis];
            inside = inside && at >= 0 && at < (long long)map.shape[axis];
            offset += at * (long long)map.strides[axis - 1];
        }
        for (unsigned piece = 0; piece < row_bytes; piece += 16) {
            char data[16] = {};
            const long long first = (long long)copy.at[0] * map.element + piece;
            const long long end = (long long)map.shape[0] * map.element;
            const long long from = first < 0 ? 0 : first, to = first + 16 < end ? first + 16 : end;
            if (inside && from < to) {
                const char* source = reinterpret_cast<const char*>(map.address) + offset + from;
                cuda_host_note_read(source, unsigned(to - from), copy.site);
                memcpy(data + (from - first), source, size_t(to - from));
            }
            char* target = shared + swizzled(copy.to + row * row_bytes + piece, map.swizzle);
            cuda_host_note_write(target, 16, copy.site);
            memcpy(target, data, 16);
        }
    }
    Mbarrier& barrier = barrier_at(copy.barrier, "a copy of a box", copy.site);
    barrier.n_bytes -= long(n_rows) * row_bytes;
    end_phase_if_complete(barrier);
}

// In some schedules copies end when nobody can go on without, and the newest first: one that is overtaken again and again
// shows who took its end for granted.
static bool newest_first() { return launch.options.seed % 3 == 1; }

bool deliver_copy() {
    if (under_way.empty()) return false;
    const size_t n = under_way.size(), i = newest_first() ? n - 1 : random_number() % n;
    const Copy copy = under_way[i];
    under_way.erase(under_way.begin() + long(i));
    deliver(copy);
    return true;
}

void deliver_sometimes() {
    if (!under_way.empty() && !newest_first() && random_number() % 8 == 0) deliver_copy();
}

size_t copies_under_way() { return under_way.size(); }

// Others may run here: what waits for nobody must not depend on going on at once.
static void give_way() {
    if (random_number() % 4) return;
    make_ready(current->linear);
    yield();
}

}  // namespace cuda_host

using namespace cuda_host;

extern "C" {

void cuda_host_mbarrier_init(unsigned address, unsigned n_threads, Site site) {
    if (address % 8) fail("mbarrier.init %s: address %u is no multiple of 8", text(site).c_str(), address);
    if (!n_threads) fail("mbarrier.init %s: nobody is expected", text(site).c_str());
    checker_trust_barriers();
    barriers[address] = {n_threads, n_threads, 0, 0, {}};
}

void cuda_host_mbarrier_arrive(unsigned address, unsigned n_bytes, Site site) {
    give_way();
    Mbarrier& barrier = barrier_at(address, "mbarrier.arrive", site);
    if (!barrier.n_missing)
        fail("mbarrier.arrive %s: all %u arrivals of the phase have been", text(site).c_str(), barrier.n_expected);
    barrier.n_bytes += n_bytes;
    barrier.n_missing--;
    end_phase_if_complete(barrier);
}

void cuda_host_mbarrier_wait(unsigned address, unsigned parity, Site site) {
    give_way();
    while ((barrier_at(address, "mbarrier.try_wait", site).phase & 1) == parity) {
        Thread& me = *current;
        me.state = State::at_mbarrier;
        me.waits_at = "mbarrier.try_wait";
        me.site = site;
        barriers[address].waiting.push_back(me.linear);
        yield();
    }
}

void cuda_host_copy_box(unsigned to, const void* map, unsigned barrier, const int* at, unsigned n_axes, Site site) {
    Copy copy{to, barrier, {}, {}, site};
    memcpy(&copy.map, map, sizeof copy.map);
    memcpy(copy.at, at, n_axes * sizeof *at);
    if (copy.map.n_axes != n_axes)
        fail("a copy of a box of %u axes %s: the map has %u", n_axes, text(site).c_str(), copy.map.n_axes);
    if (copy.map.box[0] * copy.map.element % 16)
        fail("a copy of a box %s: its rows are of %u bytes, no multiple of 16", text(site).c_str(),
             copy.map.box[0] * copy.map.element);
    if (to % 128) fail("a copy of a box %s: shared address %u is no multiple of 128", text(site).c_str(), to);
    if ((long long)at[0] * copy.map.element % 16)
        fail("a copy of a box %s: it starts at byte %lld, no multiple of 16", text(site).c_str(),
             (long long)at[0] * copy.map.element);
    barrier_at(barrier, "a copy of a box", site);
    under_way.push_back(copy);
    deliver_sometimes();
}
}
