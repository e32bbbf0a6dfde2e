// Memory for buffers: whole pages between two ranges of addresses that may not be touched.
#include <sys/mman.h>

#include <stddef.h>

extern "C" {

// n_bytes of zeros, or null, with guard_bytes of address space on each side; both are multiples of the page size.
char* cuda_host_map(size_t n_bytes, size_t guard_bytes) {
    const size_t n_reserved = n_bytes + 2 * guard_bytes;
    void* reserved = mmap(nullptr, n_reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return nullptr;
    char* start = static_cast<char*>(reserved) + guard_bytes;
    if (mprotect(start, n_bytes, PROT_READ | PROT_WRITE) == 0) return start;
    munmap(reserved, n_reserved);
    return nullptr;
}

void cuda_host_unmap(char* start, size_t n_bytes, size_t guard_bytes) {
    munmap(start - guard_bytes, n_bytes + 2 * guard_bytes);
}

}
