// printf is built into NVRTC; files are not there on a GPU.
#pragma once
#include <stddef.h>
