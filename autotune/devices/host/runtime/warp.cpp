// What the lanes of a warp do together. Lanes that call with one mask meet; when all of its lanes that are still alive
// have arrived, the operation takes place. Different masks meet independently, so a warp may be split.
#include <string.h>

#include <algorithm>

#include "runtime.hpp"

namespace cuda_host {

struct Meeting {
    unsigned mask, arrived, n_readers;
    const char* name;
    Site site;
    Collective function;
    bool synchronises_memory;
    alignas(16) Operands in;
    alignas(16) Operands out;
};

static std::vector<Meeting*> open_meetings[max_warps], spare;
static std::vector<unsigned> converging[max_warps];  // threads that asked who is with them

static unsigned lane_of(const Thread& t) { return t.linear % warp_size; }
static unsigned warp_of(const Thread& t) { return t.linear / warp_size; }

void reset_warps() {
    for (std::vector<Meeting*>& meetings : open_meetings) {  // left over from a launch that failed
        spare.insert(spare.end(), meetings.begin(), meetings.end());
        meetings.clear();
    }
    for (std::vector<unsigned>& threads : converging) threads.clear();
}

// Lanes that ask for the active mask at one place are together if nothing else can run before they go on: that is when
// the branches of a warp are as far as they get. Returns whether any were let go on.
bool converge() {
    for (unsigned warp = 0; warp < max_warps; warp++) {
        std::vector<unsigned>& waiting = converging[warp];
        if (waiting.empty()) continue;
        const Site site = thread(waiting[0]).site;
        const auto is_elsewhere = [&](unsigned linear) { return !same(thread(linear).site, site); };
        const auto rest = std::stable_partition(waiting.begin(), waiting.end(), is_elsewhere);
        unsigned mask = 0;
        for (auto lane = rest; lane != waiting.end(); ++lane) mask |= 1u << *lane % warp_size;
        for (auto lane = rest; lane != waiting.end(); ++lane) {
            thread(*lane).active_mask = mask;
            make_ready(*lane);
        }
        waiting.erase(rest, waiting.end());
        return true;
    }
    return false;
}

static bool close_if_complete(unsigned warp, Meeting* m) {
    const unsigned expected = m->mask & lanes_alive(warp);
    if ((m->arrived & expected) != expected) return false;
    if (m->function) {
        Uninstrumented guard;
        m->function(m->arrived, m->in, m->out);
    }
    if (m->synchronises_memory) checker_warp_barrier(warp, m->mask);
    std::vector<Meeting*>& meetings = open_meetings[warp];
    meetings.erase(std::find(meetings.begin(), meetings.end(), m));
    const bool descending = launch.options.schedule == Schedule::descending;
    for (unsigned k = 0; k < warp_size; k++) {
        const unsigned lane = descending ? warp_size - 1 - k : k;
        if (m->arrived >> lane & 1) make_ready(warp * warp_size + lane);
    }
    return true;
}

void warp_lost_thread(unsigned warp) {
    std::vector<Meeting*>& meetings = open_meetings[warp];
    for (size_t i = 0; i < meetings.size();)
        if (!close_if_complete(warp, meetings[i])) i++;
}

// Waits until the lanes of `mask` have met; the caller leaves the meeting when it has read its result.
static Meeting* meet(unsigned mask, const char* name, Site site, const void* in, unsigned n_bytes,
                     Collective function = nullptr, bool synchronises_memory = false) {
    Thread& me = *current;
    const unsigned warp = warp_of(me), lane = lane_of(me);
    if (!(mask >> lane & 1))
        fail("%s %s: lane %u calls with mask 0x%08x, which leaves it out", name, text(site).c_str(), lane, mask);
    Meeting* m = nullptr;
    for (Meeting* candidate : open_meetings[warp])
        if (candidate->mask == mask) m = candidate;
    if (!m) {
        if (spare.empty()) spare.push_back(new Meeting);
        m = spare.back();
        spare.pop_back();
        m->mask = mask;
        m->arrived = m->n_readers = 0;
        m->name = name;
        m->site = site;
        m->function = function;
        m->synchronises_memory = synchronises_memory;
        open_meetings[warp].push_back(m);
    } else if (m->site.line != site.line || strcmp(m->name, name)) {
        fail("divergent warp: lane %u is at %s %s, other lanes of its mask wait at %s %s", lane, name,
             text(site).c_str(), m->name, text(m->site).c_str());
    }
    if (n_bytes) memcpy(m->in[lane], in, n_bytes);
    m->arrived |= 1u << lane;
    m->n_readers++;
    me.meeting = m;
    me.state = State::at_warp;
    me.waits_at = name;
    me.site = site;
    close_if_complete(warp, m);
    yield();
    return m;
}

static void leave(Meeting* m) {
    current->meeting = nullptr;
    if (--m->n_readers == 0) spare.push_back(m);
}

}  // namespace cuda_host

using namespace cuda_host;

extern "C" {

void cuda_host_syncwarp(unsigned mask, Site site) { leave(meet(mask, "__syncwarp", site, nullptr, 0, nullptr, true)); }

void cuda_host_shuffle(unsigned mask, void* value, unsigned n_bytes, int source_lane, Site site) {
    Meeting* m = meet(mask, "__shfl_sync", site, value, n_bytes);
    const unsigned source = unsigned(source_lane) % warp_size;
    if (!(m->arrived >> source & 1))
        fail("__shfl_sync %s: lane %u reads lane %u, which takes no part (mask 0x%08x, present 0x%08x)",
             text(site).c_str(), lane_of(*current), source, mask, m->arrived);
    memcpy(value, m->in[source], n_bytes);
    leave(m);
}

unsigned cuda_host_ballot(unsigned mask, int predicate, Site site) {
    const unsigned char mine = predicate != 0;
    Meeting* m = meet(mask, "a vote", site, &mine, 1);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < warp_size; lane++)
        if ((m->arrived >> lane & 1) && m->in[lane][0]) votes |= 1u << lane;
    leave(m);
    return votes;
}

void cuda_host_collective(unsigned mask, const char* name, const void* in, unsigned n_in, void* out, unsigned n_out,
                          Collective function, Site site) {
    if (n_in > max_operand_bytes || n_out > max_operand_bytes)
        fail("%s %s: an operand is larger than %u bytes", name, text(site).c_str(), max_operand_bytes);
    Meeting* m = meet(mask, name, site, in, n_in, function);
    memcpy(out, m->out[lane_of(*current)], n_out);
    leave(m);
}

unsigned cuda_host_activemask(Site site) {
    Thread& me = *current;
    me.state = State::at_warp;
    me.waits_at = "__activemask";
    me.site = site;
    converging[warp_of(me)].push_back(me.linear);
    yield();
    return me.active_mask;
}

}
