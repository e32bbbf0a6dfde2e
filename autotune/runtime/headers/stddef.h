// size_t, ptrdiff_t and NULL are built into NVRTC.
#pragma once

#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
