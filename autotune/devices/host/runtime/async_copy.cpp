// Asynchronous copies (cp.async). The hardware may read the source and write the target at any time until the wait; here
// each of the two happens at the issue or at the wait, as the seed has it.
#include <string.h>

#include "runtime.hpp"

namespace cuda_host {

static void fetch(AsyncCopy& copy) {
    const unsigned n_bytes = copy.n_bytes - copy.n_zeros;
    cuda_host_note_read(copy.from, n_bytes, copy.site);
    memset(copy.data, 0, sizeof copy.data);
    memcpy(copy.data, copy.from, n_bytes);
    copy.fetched = true;
}

static void deliver(AsyncCopy& copy) {
    cuda_host_note_write(copy.to, copy.n_bytes, copy.site);
    memcpy(copy.to, copy.data, copy.n_bytes);
    copy.delivered = true;
}

// Completes what was issued before the last `n_pending` commits.
void finish_copies(Thread& thread, unsigned n_pending) {
    if (thread.groups.size() <= n_pending) return;
    const size_t n_groups = thread.groups.size() - n_pending;
    const unsigned n_copies = thread.groups[n_groups - 1];
    for (unsigned i = 0; i < n_copies; i++) {
        AsyncCopy& copy = thread.copies[i];
        if (!copy.fetched) fetch(copy);
        if (!copy.delivered) deliver(copy);
    }
    thread.copies.erase(thread.copies.begin(), thread.copies.begin() + n_copies);
    thread.groups.erase(thread.groups.begin(), thread.groups.begin() + long(n_groups));
    for (unsigned& end : thread.groups) end -= n_copies;
}

void forget_copies(Thread& thread) {
    thread.copies.clear();
    thread.groups.clear();
}

}  // namespace cuda_host

using namespace cuda_host;

extern "C" {

void cuda_host_async_copy(void* to, const void* from, unsigned n_bytes, unsigned n_zeros, Site site) {
    if ((n_bytes != 4 && n_bytes != 8 && n_bytes != 16) || n_zeros > n_bytes)
        fail("__pipeline_memcpy_async of %u bytes (%u of them zeros): 4, 8 or 16 are possible %s", n_bytes, n_zeros,
             text(site).c_str());
    if (uintptr_t(to) % n_bytes || uintptr_t(from) % n_bytes)
        fail("__pipeline_memcpy_async: an address is not aligned to %u bytes %s", n_bytes, text(site).c_str());
    AsyncCopy copy{static_cast<char*>(to), static_cast<const char*>(from), n_bytes, n_zeros, site, false, false, {}};
    const auto early = random_number();
    if (early & 1) fetch(copy);
    if ((early & 3) == 3) deliver(copy);
    current->copies.push_back(copy);
}

void cuda_host_async_commit() { current->groups.push_back(unsigned(current->copies.size())); }

void cuda_host_async_wait(unsigned n_pending) { finish_copies(*current, n_pending); }

}
