// CUDA's device-side language in C++, for checking kernels where there is no GPU. It is precompiled and included before
// a rendered template; nvcc and NVRTC never see it. Threads, barriers and checks are the runtime's.
#pragma once
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <type_traits>
#include <utility>

#define AUTOTUNE_HOST 1  // for templates/lib: here instructions are emulated, elsewhere they are PTX

#include "abi.hpp"
#include "language.hpp"
#include "vectors.hpp"
#include "threads.hpp"
#include "atomics.hpp"
#include "memory.hpp"
#include "integer.hpp"
#include "mathematics.hpp"
#include "half.hpp"
#include "mma.hpp"
#include "kernel.hpp"
