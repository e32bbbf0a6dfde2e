// Which thread of the block runs next, how one gives way, and how a block ends: all returned, one failed, or a deadlock.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <utility>

#include "runtime.hpp"

cuda_host::Environment cuda_host_environment;

namespace cuda_host {

Launch launch;
Thread* current;

static void* scheduler_stack_pointer;
static std::vector<unsigned> ready;  // ascending, descending, random; [ready_head, end) wait
static size_t ready_head;
static std::vector<unsigned> ready_of_warp[max_warps];  // warp_ahead
static unsigned warp_priority[max_warps], n_warps;
static unsigned alive, alive_of_warp[max_warps];

unsigned n_alive() { return alive; }
unsigned lanes_alive(unsigned warp) { return alive_of_warp[warp]; }

void make_ready(unsigned linear) {
    thread(linear).state = State::ready;
    if (launch.options.schedule == Schedule::warp_ahead)
        ready_of_warp[linear / warp_size].push_back(linear);
    else
        ready.push_back(linear);
}

static unsigned take_random(std::vector<unsigned>& from, size_t first) {
    const size_t i = first + random_number() % (from.size() - first);
    const unsigned linear = from[i];
    from[i] = from.back();
    from.pop_back();
    return linear;
}

// One warp runs as far as it can before the others: what independent warps may do.
static bool pick_warp_ahead(unsigned& linear) {
    for (unsigned k = 0; k < n_warps; k++) {
        std::vector<unsigned>& lanes = ready_of_warp[warp_priority[k]];
        if (lanes.empty()) continue;
        linear = take_random(lanes, 0);
        if (random_number() % 64 == 0) std::swap(warp_priority[k], warp_priority[random_number() % n_warps]);
        return true;
    }
    return false;
}

std::string suspicion;

static bool pick(unsigned& linear) {
    if (launch.options.schedule == Schedule::warp_ahead) return pick_warp_ahead(linear);
    if (ready_head == ready.size()) return false;
    linear = launch.options.schedule == Schedule::random ? take_random(ready, ready_head) : ready[ready_head++];
    if (ready_head == ready.size()) {
        ready.clear();
        ready_head = 0;
    }
    return true;
}

static void run(Thread& next, void** saved_stack_pointer) {
    current = &next;
    cuda_host_environment.thread = &next;
    switch_to(saved_stack_pointer, next.stack_pointer);
}

void yield() {
    Thread* const me = current;
    unsigned linear;
    deliver_sometimes();
    bool found = pick(linear);
    while (!found && alive && (converge() || deliver_copy())) found = pick(linear);
    if (!found)
        switch_to(&me->stack_pointer, scheduler_stack_pointer);  // nobody can run
    else if (&thread(linear) != me)
        run(thread(linear), &me->stack_pointer);
}

static void thread_main() {
    launch.info.call(launch.arguments);
    checker_settle();
    finish_copies(*current, 0);
    const unsigned warp = current->linear / warp_size;
    current->state = State::done;
    alive--;
    alive_of_warp[warp] &= ~(1u << current->linear % warp_size);
    warp_lost_thread(warp);
    barrier_lost_thread();
    yield();
    __builtin_trap();  // a thread that returned is never run again
}

static std::string describe_deadlock() {
    struct Group {
        const Thread* first;
        unsigned n;
    };
    std::vector<Group> groups;
    for (unsigned i = 0; i < launch.n_threads; i++) {
        const Thread& t = thread(i);
        bool found = false;
        for (Group& g : groups)
            if (g.first->state == t.state && (t.state == State::done || (g.first->site.line == t.site.line &&
                                                                         !strcmp(g.first->waits_at, t.waits_at)))) {
                g.n++;
                found = true;
                break;
            }
        if (!found) groups.push_back({&t, 1});
    }
    std::string message = "deadlock:";
    for (const Group& g : groups) {
        message += text("%s %u threads (first %u) ", &g == &groups[0] ? "" : ";", g.n, g.first->linear);
        if (g.first->state == State::done)
            message += "have returned";
        else
            message += text("wait at %s %s", g.first->waits_at, text(g.first->site).c_str());
    }
    return message;
}

static std::string whereabouts() {
    const uint3 b = cuda_host_environment.block;
    std::string where = text("kernel %s, block (%u,%u,%u)", launch.kernel, b.x, b.y, b.z);
    if (current) where += text(", thread (%u,%u,%u)", current->index.x, current->index.y, current->index.z);
    return where + ": ";
}

bool run_block() {
    suspicion.clear();
    ready.clear();
    ready_head = 0;
    n_warps = (launch.n_threads + warp_size - 1) / warp_size;
    alive = launch.n_threads;
    for (unsigned w = 0; w < n_warps; w++) {
        const unsigned n_lanes = launch.n_threads - w * warp_size;
        alive_of_warp[w] = n_lanes >= warp_size ? ~0u : (1u << n_lanes) - 1;
        ready_of_warp[w].clear();
        warp_priority[w] = w;
    }
    if (launch.options.schedule == Schedule::warp_ahead)
        for (unsigned w = n_warps; w > 1; w--) std::swap(warp_priority[w - 1], warp_priority[random_number() % w]);
    reset_barrier();
    reset_named_barriers();
    reset_warps();
    reset_engine();
    const bool descending = launch.options.schedule == Schedule::descending;
    for (unsigned i = 0; i < launch.n_threads; i++) {
        reset_thread(i, thread_main);
        forget_copies(thread(i));
    }
    for (unsigned i = 0; i < launch.n_threads; i++) make_ready(descending ? launch.n_threads - 1 - i : i);

    unsigned first = 0;
    pick(first);
    run(thread(first), &scheduler_stack_pointer);
    current = nullptr;
    if (!launch.failed && !suspicion.empty()) {
        launch.failed = true;
        launch.error = suspicion;
    }
    if (!launch.failed && alive) {
        launch.failed = true;
        launch.error = whereabouts() + describe_deadlock();
    }
    if (!launch.failed && copies_under_way()) {
        launch.failed = true;
        launch.error =
            whereabouts() + text("the block ended while %zu copies of boxes were under way", copies_under_way());
    }
    return !launch.failed;
}

std::string text(const char* format, ...) {
    char buffer[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

std::string text(Site site) { return text("[%s:%d]", site.file, site.line); }

void suspect(const std::string& message) {
    if (suspicion.empty()) suspicion = whereabouts() + message;
}

// The block is abandoned where it stands: kernels own nothing that would need unwinding.
static void abandon(const std::string& message) {
    if (!launch.failed) launch.error = suspicion.empty() ? whereabouts() + message : suspicion;
    launch.failed = true;
    void* unused;
    switch_to(&unused, scheduler_stack_pointer);
}

void fail(const char* format, ...) {
    char buffer[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    abandon(buffer);
    __builtin_trap();
}

}  // namespace cuda_host

extern "C" void cuda_host_stop(cuda_host::Site site, const char* format, ...) {
    char buffer[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    cuda_host::fail("%s %s", buffer, cuda_host::text(site).c_str());
}
