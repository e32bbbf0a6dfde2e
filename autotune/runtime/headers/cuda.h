// What device code may use of CUDA's driver interface: its types. The functions are the host's, and NVRTC refuses those.
#pragma once

#define CUDA_VERSION CUDART_VERSION  // which is built into NVRTC

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct alignas(64) CUtensorMap_st {
    unsigned long long opaque[16];
} CUtensorMap;
