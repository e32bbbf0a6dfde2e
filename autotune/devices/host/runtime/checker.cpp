// The access checker. A kernel of the check build calls it before each load and store (hooks.cpp), and it stops the
// kernel at the first one that a GPU may not make: outside every buffer, unwritten shared memory, a read-only buffer,
// or a race. Races are judged by what is ordered before what, not by what happened, so that one schedule shows them.
//
// Time is a counter that grows at each barrier. An access is ordered before another by a block barrier between them, or
// by warp barriers that lead from the one lane to the other; nothing orders blocks.
#include "checker.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

namespace cuda_host {

// Who touched a byte last. A write forgets the reads before it, which it was checked against.
struct Shadow {
    unsigned written_at, read_at;  // times; 0 is never
    unsigned write_block, read_block;
    unsigned readers;  // warps, since the last read that all before it are ordered before
    Place write_place, read_place, earlier_place;  // of the last read, and of the last one by another thread than its
    unsigned read_lanes;  // of read_warp, at read_at or before, and not ordered before each other
    unsigned reader : 10;  // of read_place
    unsigned writer : 10, read_warp : 5, atomic : 1, cas : 1, initialised : 1;
    unsigned write_blocks : 1, read_blocks : 1, read_warps : 1;  // more than one
};

struct Memory : Range {
    Shadow* shadow;  // one for each byte
    char* end() const { return start + n_bytes; }
    bool is_shared() const { return kind == 's'; }
};

static bool checking;
static bool trusting;  // barriers in shared memory order it: races are not looked for there
static std::vector<Memory> memories;
static const char* suspected;  // the byte of shared memory that was read first although nobody had written it
static size_t latest;  // index of the memory accessed last: most likely the next one too
static std::vector<std::pair<const char*, const char*>> constants;  // read-only segments of the kernel's library
static char* image;                                                 // where that library is loaded
static std::vector<Site> sites;
static unsigned now, block_barrier_at, warp_barrier_at[max_warps];
static unsigned seen[max_warps][warp_size][warp_size];  // [w][a][b]: lane a comes after what lane b did before then
static unsigned seen_warps[max_warps][max_warps];       // [a][b]: warp a comes after what warp b did before then
// A store that races with another one. It is no fault if memory does not change, since both store the same value: this
// is seen after the store, so at the next access, or when the thread ends.
static struct {
    std::string why;  // "": there is none
    const char* address;
    std::vector<char> before;
} doubt;
static unsigned arrived_at[max_named][max_warps];       // when each warp arrived at a named barrier; 0: not yet

Uninstrumented::Uninstrumented() : before(checking) { checking = false; }
Uninstrumented::~Uninstrumented() { checking = before; }

// ---------------------------------------------------------------- places
constexpr Place is_site = 1u << 31;

Place place_of(Site site) {
    for (size_t i = 0; i < sites.size(); i++)
        if (sites[i].line == site.line && sites[i].file == site.file) return Place(i) | is_site;
    sites.push_back(site);
    return Place(sites.size() - 1) | is_site;
}

Place place_of(const void* return_address) {
    return Place(static_cast<const char*>(return_address) - 1 - image);  // - 1: in the call, not after it
}

std::string text_of(Place place) {
    return place & is_site ? text(sites[place & ~is_site]) : text("[pc 0x%x]", place);  // the driver finds the line
}

// ---------------------------------------------------------------- what is ordered before what
void checker_block_barrier() { block_barrier_at = ++now; }

void checker_warp_barrier(unsigned warp, unsigned mask) {
    if (!checking) return;
    now++;
    const unsigned alive = lanes_alive(warp);
    if ((mask & alive) == alive) {
        warp_barrier_at[warp] = now;
        return;
    }
    unsigned known[warp_size] = {};  // by any of the lanes, and then by all of them
    for (unsigned a = 0; a < warp_size; a++)
        for (unsigned b = 0; b < warp_size && (mask >> a & 1); b++) known[b] = std::max(known[b], seen[warp][a][b]);
    for (unsigned b = 0; b < warp_size; b++)
        if (mask >> b & 1) known[b] = now;
    for (unsigned a = 0; a < warp_size; a++)
        if (mask >> a & 1) memcpy(seen[warp][a], known, sizeof known);
}

void checker_arrival(unsigned barrier, unsigned warp) { arrived_at[barrier][warp] = ++now; }

void checker_named_barrier(unsigned barrier, unsigned warps) {
    unsigned known[max_warps] = {};  // what the warps that arrived did, and what came before it
    now++;
    for (unsigned a = 0; a < max_warps; a++) {
        if (!arrived_at[barrier][a]) continue;
        for (unsigned b = 0; b < max_warps; b++) known[b] = std::max(known[b], seen_warps[a][b]);
    }
    for (unsigned a = 0; a < max_warps; a++)  // those that waited did nothing after they arrived
        known[a] = std::max(known[a], warps >> a & 1 ? now : arrived_at[barrier][a]);
    for (unsigned a = 0; a < max_warps; a++)
        for (unsigned b = 0; b < max_warps && (warps >> a & 1); b++) seen_warps[a][b] = std::max(seen_warps[a][b], known[b]);
    memset(arrived_at[barrier], 0, sizeof arrived_at[barrier]);
}

void checker_trust_barriers() { trusting = true; }

static bool warps_are_ordered(unsigned warps, unsigned when, const Thread& me) {
    for (unsigned rest = warps; rest; rest &= rest - 1)
        if (seen_warps[me.linear / warp_size][__builtin_ctz(rest)] <= when) return false;
    return true;
}

static bool ordered_before_lane(unsigned lane, unsigned when, const Thread& me) {  // of one warp
    const unsigned warp = me.linear / warp_size;
    return lane == me.linear % warp_size || warp_barrier_at[warp] > when || seen_warps[warp][warp] > when ||
           seen[warp][me.linear % warp_size][lane] > when;
}

static bool write_is_ordered(const Shadow& s, const Thread& me) {
    if (s.writer == me.linear || block_barrier_at > s.written_at) return true;
    if (s.writer / warp_size != me.linear / warp_size) return warps_are_ordered(1u << s.writer / warp_size, s.written_at, me);
    return ordered_before_lane(s.writer % warp_size, s.written_at, me);
}

// The lanes whose reads are not ordered before `me`; only if all are of its warp.
static unsigned unordered_lanes(const Shadow& s, const Thread& me) {
    unsigned lanes = 0;
    for (unsigned rest = s.read_lanes; rest; rest &= rest - 1) {
        const unsigned lane = unsigned(__builtin_ctz(rest));
        if (!ordered_before_lane(lane, s.read_at, me)) lanes |= 1u << lane;
    }
    return lanes;
}

// ---------------------------------------------------------------- one access
static std::string race_text(const Memory& m, const char* address, const char* access, const Shadow& s, bool with_write,
                             Place place) {
    const unsigned block = with_write ? s.write_block : s.read_block;
    const bool blocks = with_write ? s.write_blocks : s.read_blocks;
    const bool is_own = s.reader == current->linear && s.earlier_place && (m.is_shared() || s.read_block == launch.block_number);
    std::string other;
    if (!m.is_shared() && (blocks || block != launch.block_number))
        other = text("by block %u (x fastest), and nothing orders blocks", block);
    else if (with_write)
        other = text("by thread %u of the block, with no barrier between", unsigned(s.writer));
    else
        other = text("by a thread of warp %u of the block, with no barrier between", unsigned(s.read_warp));
    return text("race on %s %s+%ld: %s here %s, %s %s %s", m.is_shared() ? "shared memory" : "buffer", m.name,
         long(address - m.start), access, text_of(place).c_str(), with_write ? "written" : "read", other.c_str(),
         text_of(with_write ? s.write_place : is_own ? s.earlier_place : s.read_place).c_str());
}

static void note_read(Shadow& s, const Thread& me, unsigned block, Place place) {
    const unsigned warp = me.linear / warp_size;
    const bool is_first = !(s.readers >> warp & 1) && warps_are_ordered(s.readers, s.read_at, me);
    const bool stale = !s.read_at || block_barrier_at > s.read_at || s.read_block != block || is_first;
    s.read_blocks |= s.read_at && s.read_block != block;
    if (stale || s.reader != me.linear) s.earlier_place = stale ? Place() : s.read_place;
    s.reader = me.linear & (max_threads - 1);
    if (stale) {
        s.read_lanes = s.readers = 0;
        s.read_warps = 0;
    } else if (s.read_warp != warp) {
        s.read_warps = 1;
        s.read_lanes = 0;
    } else if (s.read_lanes != 1u << me.linear % warp_size) {
        s.read_lanes = unordered_lanes(s, me);
    }
    s.read_lanes |= 1u << me.linear % warp_size;
    s.read_warp = warp;
    s.readers |= 1u << warp;
    s.read_block = block;
    s.read_at = now;
    s.read_place = place;
}

static void note_write(Shadow& s, const Thread& me, unsigned block, bool atomic, bool cas, Place place) {
    s.write_blocks = atomic && s.atomic && s.written_at && (s.write_blocks || s.write_block != block);
    s.written_at = now;
    s.write_block = block;
    s.writer = me.linear & (max_threads - 1);
    s.write_place = place;
    s.atomic = atomic;
    s.cas = cas;
    s.initialised = 1;
    s.read_at = 0;
    s.readers = 0;
    s.read_blocks = 0;
}

static bool read_conflicts(const Shadow& s, const Thread& me, unsigned block) {
    if (!s.read_at) return false;
    if (s.read_blocks || s.read_block != block) return true;
    if (block_barrier_at > s.read_at) return false;
    const unsigned warp = me.linear / warp_size;
    return s.read_warps || s.read_warp != warp ? !warps_are_ordered(s.readers, s.read_at, me) : unordered_lanes(s, me) != 0;
}

static void touch(Memory& m, char* address, unsigned n_bytes, Access access, Place place) {
    const Thread& me = *current;
    const unsigned block = m.is_shared() ? 0 : launch.block_number;
    const bool writes = access != Access::read, cas = access == Access::cas;
    const bool atomic = cas || access == Access::atomic;
    const char* name = atomic ? "atomically updated" : writes ? "written" : "read";
    for (unsigned i = 0; i < n_bytes; i++) {
        Shadow& s = m.shadow[address + i - m.start];
        if (m.is_shared() && access != Access::write && !s.initialised && !(launch.info.allowed & allows_unset)) {
            if (suspicion.empty()) suspected = address + i;
            suspect(text("read of shared memory that nobody has written, %s+%ld (%u bytes) %s (as compute-sanitizer's initcheck "
                 "of global memory; if nothing depends on it, define AUTOTUNE_UNSET_SHARED: -D AUTOTUNE_UNSET_SHARED=1)",
                 m.name, long(address + i - m.start), n_bytes, text_of(place).c_str()));
            if (atomic) fail("%s", suspicion.c_str());
        }
        if (trusting && m.is_shared()) {
            s.initialised |= writes;
            continue;
        }
        // A read before a loop of atomicCAS is a guess, which the loop compares: no order is needed.
        if (s.written_at && !(atomic && s.atomic) && (writes || !s.cas)) {
            const bool same_block = s.write_block == block && !s.write_blocks;
            if (!same_block || !write_is_ordered(s, me)) {
                const std::string why = race_text(m, address + i, name, s, true, place);
                if (access != Access::write || s.atomic) fail("%s", why.c_str());
                if (doubt.why.empty()) doubt = {why, address, std::vector<char>(address, address + n_bytes)};
            }
        }
        if (writes) {
            if (!cas && read_conflicts(s, me, block)) {
                if (address + i == suspected) suspicion.clear();  // nobody had written it yet
                fail("%s", race_text(m, address + i, name, s, false, place).c_str());
            }
            note_write(s, me, block, atomic, cas, place);
        } else {
            note_read(s, me, block, place);
        }
    }
}

[[noreturn]] static void report_outside(const char* address, unsigned n_bytes, Access access, Place place) {
    std::string where = text("at %p, near no buffer", static_cast<const void*>(address));
    long nearest = 1l << 24;
    for (const Memory& m : memories) {
        const char* what = m.is_shared() ? "shared memory" : "buffer";
        const long past = address + n_bytes - m.end(), before = m.start - address;
        if (past > 0 && past < nearest) {
            nearest = past;
            where = text("%ld bytes from the start of %s %s, which has %zu", long(address - m.start), what, m.name,
                         m.n_bytes);
        } else if (before > 0 && before < nearest) {
            nearest = before;
            where = text("%ld bytes before the start of %s %s", before, what, m.name);
        }
    }
    fail("out-of-bounds %s of %u bytes, %s %s", access == Access::read ? "read" : "write", n_bytes, where.c_str(),
         text_of(place).c_str());
}

static bool is_private(const char* address) {
    const char* environment = reinterpret_cast<const char*>(&cuda_host_environment);
    return (address >= current->stack && address < current->stack + stack_bytes) ||
           (address >= environment && address < environment + sizeof cuda_host_environment);
}

void checker_settle() {
    if (doubt.why.empty()) return;
    const std::string why = std::move(doubt.why);
    doubt.why.clear();
    if (memcmp(doubt.address, doubt.before.data(), doubt.before.size())) fail("%s", why.c_str());
}

void check_access(const void* pointer, size_t n_bytes, Access access, Place place) {
    char* const address = static_cast<char*>(const_cast<void*>(pointer));
    if (!checking || !current || !n_bytes) return;
    checker_settle();
    if (is_private(address)) return;
    for (size_t k = 0; k < memories.size(); k++) {
        const size_t i = latest + k < memories.size() ? latest + k : latest + k - memories.size();
        Memory& m = memories[i];
        if (address < m.start || address + n_bytes > m.end()) continue;
        latest = i;
        if (m.kind == 'g') return;
        if (access != Access::read && !m.writable)
            fail("write to the read-only buffer %s+%ld %s", m.name, long(address - m.start), text_of(place).c_str());
        if (access >= Access::atomic && uintptr_t(address) % n_bytes)
            fail("misaligned atomic on %s+%ld %s", m.name, long(address - m.start), text_of(place).c_str());
        touch(m, address, unsigned(n_bytes), access, place);
        return;
    }
    for (const auto& segment : constants)
        if (access == Access::read && address >= segment.first && address + n_bytes <= segment.second) return;
    report_outside(address, unsigned(n_bytes), access, place);
}

// ---------------------------------------------------------------- begin and end
// Finds the library that the kernel lives in, and its read-only segments (tables that the compiler made;
// those that hold addresses are read-only once it is loaded).
static int note_library(dl_phdr_info* library, size_t, void* kernel) {
    bool found = false;
    std::vector<std::pair<const char*, const char*>> segments;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const auto& header = library->dlpi_phdr[i];
        if (header.p_type != PT_LOAD && header.p_type != PT_GNU_RELRO) continue;
        const char* start = reinterpret_cast<const char*>(library->dlpi_addr + header.p_vaddr);
        const char* end = start + header.p_memsz;
        if (kernel >= static_cast<const void*>(start) && kernel < static_cast<const void*>(end)) found = true;
        if (header.p_type == PT_GNU_RELRO || !(header.p_flags & PF_W)) segments.push_back({start, end});
    }
    if (!found) return 0;
    constants = segments;
    image = reinterpret_cast<char*>(library->dlpi_addr);
    return 1;
}

bool checker_begin() {
    if (!launch.options.check) return true;
    dl_iterate_phdr(note_library, reinterpret_cast<void*>(launch.info.call));
    for (const Range& range : launch.ranges) {
        void* shadow = calloc(range.n_bytes ? range.n_bytes : 1, sizeof(Shadow));  // untouched pages cost nothing
        if (!shadow) {
            launch.error = "the checks of " + std::string(range.name) + ", " + std::to_string(range.n_bytes >> 20) +
                " MiB, need " + std::to_string(range.n_bytes * sizeof(Shadow) >> 20) + " MiB of memory";
            return false;
        }
        Memory m;
        static_cast<Range&>(m) = range;
        m.shadow = static_cast<Shadow*>(shadow);
        memories.push_back(m);
    }
    latest = 0;
    now = 0;
    doubt.why.clear();
    sites.clear();
    return checking = true;
}

void checker_begin_block() {
    if (!checking) return;
    memset(warp_barrier_at, 0, sizeof warp_barrier_at);
    memset(seen, 0, sizeof seen);
    memset(seen_warps, 0, sizeof seen_warps);
    memset(arrived_at, 0, sizeof arrived_at);
    trusting = false;
    block_barrier_at = ++now;  // the blocks before this one are told apart by their number
    for (Memory& m : memories)
        if (m.is_shared()) memset(static_cast<void*>(m.shadow), 0, m.n_bytes * sizeof(Shadow));
}

void checker_end() {
    checking = false;
    for (Memory& m : memories) free(m.shadow);
    memories.clear();
}

}  // namespace cuda_host
