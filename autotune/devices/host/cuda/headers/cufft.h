// What device code may use of cuFFT: its types of numbers, and its directions. The functions are the host's.
#pragma once

typedef float cufftReal;
typedef double cufftDoubleReal;
typedef float2 cufftComplex;
typedef double2 cufftDoubleComplex;

#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1
