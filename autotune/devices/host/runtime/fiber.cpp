// Fibers: a stack for each CUDA thread of a block, kept between launches, and the switch between them.
#include "runtime.hpp"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

// A switch saves the registers that the calling convention makes the callee's, changes the stack, and jumps to where
// that stack left off. A jump, not a return: the processor's return predictor would be wrong each time.
#if defined(__x86_64__)
constexpr int n_saved_registers = 6;
asm(R"(
.text
.globl cuda_host_switch
.hidden cuda_host_switch
.type cuda_host_switch,@function
cuda_host_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
.size cuda_host_switch,.-cuda_host_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl cuda_host_switch
.hidden cuda_host_switch
.type cuda_host_switch,@function
cuda_host_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x2, sp
    str x2, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size cuda_host_switch,.-cuda_host_switch
)");
#else
#error "the host device switches fibers on x86-64 and aarch64 only"
#endif
extern "C" void cuda_host_switch(void** saved_stack_pointer, void* stack_pointer);

namespace cuda_host {

static std::vector<Thread*> threads;

// Stacks start at different offsets: at equal ones, 1024 of them would share a few sets of the cache.
static size_t colour(unsigned linear) { return linear * 320 % 16384 / 64 * 64; }

bool make_threads(unsigned n) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    while (threads.size() < n) {
        void* mapped = mmap(nullptr, page + stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) return false;
        mprotect(mapped, page, PROT_NONE);  // an overflow ends here
        char* stack = static_cast<char*>(mapped) + page;
        Thread* thread = new (stack + colour(unsigned(threads.size()))) Thread();
        thread->stack = stack;
        threads.push_back(thread);
    }
    return true;
}

Thread& thread(unsigned linear) { return *threads[linear]; }

void reset_thread(unsigned linear, void (*entry)()) {
    Thread& t = *threads[linear];
    const unsigned x = launch.options.block[0], y = launch.options.block[1];
    t.linear = linear;
    t.index = {linear % x, linear / x % y, linear / x / y};
    t.meeting = nullptr;
    t.waits_at = "";
    char* top = t.stack + stack_bytes - colour(linear);
#if defined(__x86_64__)
    void** frame = reinterpret_cast<void**>(top);
    *--frame = nullptr;  // where a return address would be: keeps the stack aligned as after a call
    *--frame = reinterpret_cast<void*>(entry);
    for (int i = 0; i < n_saved_registers; i++) *--frame = nullptr;
    t.stack_pointer = frame;
#else
    char* frame = top - 160;
    memset(frame, 0, 160);
    memcpy(frame + 88, &entry, sizeof entry);  // x30, the link register
    t.stack_pointer = frame;
#endif
}

void switch_to(void** saved_stack_pointer, void* stack_pointer) { cuda_host_switch(saved_stack_pointer, stack_pointer); }

}  // namespace cuda_host
