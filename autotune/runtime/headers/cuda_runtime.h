// What nvcc's has beside what is built into NVRTC: headers of C.
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
