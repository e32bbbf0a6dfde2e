// clock_t and clock() are built into NVRTC.
#pragma once

typedef long long time_t;
#define CLOCKS_PER_SEC 1000000
