// Device code may use the same of it as under NVRTC.
#pragma once
#include "../../../../runtime/headers/cufftXt.h"
