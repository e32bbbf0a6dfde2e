// The checker, as the hooks see it.
#pragma once
#include "runtime.hpp"

namespace cuda_host {

enum class Access { read, write, atomic, cas };

// Where in the kernel: an address in its library, or a Site. Four bytes, because each byte of memory remembers two.
using Place = uint32_t;
Place place_of(const void* return_address);
Place place_of(Site site);
std::string text_of(Place place);

void check_access(const void* address, size_t n_bytes, Access access, Place place);

}  // namespace cuda_host
