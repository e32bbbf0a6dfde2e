// Types of pointers to functions of the host, which device code cannot call.
#pragma once
#include <cuda.h>
