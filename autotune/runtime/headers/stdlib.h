// malloc, free, abs and labs are built into NVRTC.
#pragma once
#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647

__device__ inline void abort() { __trap(); }
