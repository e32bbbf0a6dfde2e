// CUDA's device-side language in C++, for checking kernels where there is no GPU. It is precompiled and included before
// a rendered template; nvcc and NVRTC never see it. Threads, barriers and checks are the runtime's.
//
// What CUDA declares lies in the namespace that the source is put in, so that a source's functions add to CUDA's of the
// same name and do not hide them. CUDA's headers that a source must include lie in headers/; those of C are here.
#pragma once
#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#define AUTOTUNE_HOST 1  // for templates/lib: here instructions are emulated, elsewhere they are PTX
#define __CUDACC__ 1  // sources define CUDA's functions themselves where no compiler of CUDA's is
#define __CUDACC_RTC__ 1

#ifndef _POSIX_VERSION  // of unistd.h, which sources ask before they use what device code has not
#define _POSIX_VERSION 200809L
#endif

#include "abi.hpp"
#include "language.hpp"
#include "vectors.hpp"
#include "threads.hpp"
#include "atomics.hpp"
#include "memory.hpp"
#include "conversions.hpp"
#include "mathematics.hpp"
#include "rounding.hpp"
#include "integer.hpp"
#include "narrow.hpp"
#include "refused.hpp"
#include "mma.hpp"
#include "kernel.hpp"
