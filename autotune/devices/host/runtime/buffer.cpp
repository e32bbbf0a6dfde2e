// Memory for buffers: whole pages between two that may not be touched.
#include <sys/mman.h>
#include <unistd.h>

#include <stddef.h>

extern "C" {

// n_bytes (a multiple of the page size) of zeros, or null.
char* cuda_host_map(size_t n_bytes) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    void* mapped = mmap(nullptr, n_bytes + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    char* start = static_cast<char*>(mapped) + page;
    mprotect(mapped, page, PROT_NONE);
    mprotect(start + n_bytes, page, PROT_NONE);
    return start;
}

void cuda_host_unmap(char* start, size_t n_bytes) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    munmap(start - page, n_bytes + 2 * page);
}

}
