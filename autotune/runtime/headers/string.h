// memcpy and memset are built into NVRTC; the other functions of C that move or compare bytes are here.
#pragma once
#include <stddef.h>

__device__ inline void* memmove(void* to, const void* from, size_t n_bytes) {
    char* const target = static_cast<char*>(to);
    const char* const source = static_cast<const char*>(from);
    if (target < source)
        for (size_t i = 0; i < n_bytes; i++) target[i] = source[i];
    else
        for (size_t i = n_bytes; i > 0; i--) target[i - 1] = source[i - 1];
    return to;
}

__device__ inline int memcmp(const void* a, const void* b, size_t n_bytes) {
    const unsigned char *const first = static_cast<const unsigned char*>(a), *const second = static_cast<const unsigned char*>(b);
    for (size_t i = 0; i < n_bytes; i++)
        if (first[i] != second[i]) return first[i] < second[i] ? -1 : 1;
    return 0;
}

__device__ inline size_t strlen(const char* text) {
    size_t n = 0;
    while (text[n]) n++;
    return n;
}

__device__ inline int strcmp(const char* a, const char* b) {
    while (*a && *a == *b) a++, b++;
    return int(static_cast<unsigned char>(*a)) - int(static_cast<unsigned char>(*b));
}
