// The state of a launch, shared by the parts of the runtime. One OS thread runs one grid at a time: blocks one after
// another, and the threads of a block as fibers that switch where CUDA threads may wait for each other.
#pragma once
#include <string.h>

#include <string>
#include <vector>

#include "../cuda/abi.hpp"

namespace cuda_host {

constexpr unsigned max_threads = 1024, warp_size = 32, max_warps = max_threads / warp_size;
constexpr unsigned max_named = 16;  // barriers of a block, the first of which is that of __syncthreads
constexpr size_t stack_bytes = 128 * 1024;

enum class State : uint8_t { ready, at_barrier, at_named_barrier, at_warp, at_mbarrier, done };
enum class Schedule : int { ascending, descending, random, warp_ahead };
constexpr int random_poison = -1;

struct AsyncCopy {
    char* to;
    const char* from;
    unsigned n_bytes, n_zeros;
    Site site;
    bool fetched, delivered;  // the source was read, the target written
    unsigned char data[16];
};

struct Meeting;

// A CUDA thread. It lives at the low end of its own stack, so that the checker takes its fields for private memory.
struct Thread : ThreadIndex {
    void* stack_pointer;
    char* stack;
    State state;
    const char* waits_at;  // the function's name
    Site site;
    Meeting* meeting;
    unsigned active_mask;  // as __activemask() returns it
    std::vector<AsyncCopy> copies;
    std::vector<unsigned> groups;  // how many of the copies each commit closed
};

// What the driver asks for; it mirrors this structure.
struct Options {
    unsigned grid[3], block[3], shared_bytes, seed;
    Schedule schedule;
    Schedule block_order;
    int poison;  // of shared memory: a byte, or random_poison
    int check;   // whether the kernel was built with instrumentation
};

// Memory that a kernel may use; the driver mirrors this structure.
struct Range {
    const char* name;
    char* start;
    size_t n_bytes;
    char kind;  // b buffer, s shared variable, v variable of the module, g what the compiler notes of one
    char writable;
};

struct Launch {
    const char* kernel = "";
    KernelInfo info;
    void** arguments;
    Options options;
    std::vector<Range> ranges;
    unsigned n_threads;      // of a block
    unsigned block_number;   // x fastest
    uint64_t random_state;
    bool failed;
    std::string error;
};

extern Launch launch;
extern Thread* current;  // null while the scheduler itself runs

inline uint64_t random_number() {  // xorshift64
    launch.random_state ^= launch.random_state << 13;
    launch.random_state ^= launch.random_state >> 7;
    return launch.random_state ^= launch.random_state << 17;
}

inline bool same(Site a, Site b) { return a.line == b.line && (a.file == b.file || !strcmp(a.file, b.file)); }

// fiber.cpp
bool make_threads(unsigned n);  // false: no memory
Thread& thread(unsigned linear);
void reset_thread(unsigned linear, void (*entry)());
void switch_to(void** saved_stack_pointer, void* stack_pointer);

// scheduler.cpp
bool run_block();
void make_ready(unsigned linear);
void yield();                                   // until somebody makes the current thread ready
unsigned n_alive();                             // threads of the block that have not returned
unsigned lanes_alive(unsigned warp);            // likewise, a mask
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
// The first fault of a block that is one unless what another thread does later explains it, with its thread; "": none.
extern std::string suspicion;
void suspect(const std::string& message);
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string text(Site site);                    // [file:line]

// barrier.cpp, warp.cpp: to be told of a new block, and of a thread that returned
void reset_barrier();
void reset_named_barriers();
void barrier_lost_thread();
void reset_warps();
void warp_lost_thread(unsigned warp);
bool converge();

// async_copy.cpp
void finish_copies(Thread& thread, unsigned n_pending);
void forget_copies(Thread& thread);

// engine.cpp
void reset_engine();
bool deliver_copy();       // end one copy of a box that is under way; false: there is none
void deliver_sometimes();  // perhaps
size_t copies_under_way();

// checker.cpp
bool checker_begin();  // false: launch.error says how much memory is missing
void checker_begin_block();
void checker_end();
void checker_block_barrier();
void checker_arrival(unsigned barrier, unsigned warp);      // of a lane of a warp at a named barrier
void checker_named_barrier(unsigned barrier, unsigned warps);  // it is complete; these warps waited for it
void checker_warp_barrier(unsigned warp, unsigned mask);
void checker_settle();  // the thread's last store is done
void checker_trust_barriers();  // shared memory is ordered by what the checker does not follow
struct Uninstrumented {  // the runtime's own accesses, on a kernel's behalf
    Uninstrumented();
    ~Uninstrumented();
    bool before;
};

}  // namespace cuda_host
