// What device code may use of it.
#pragma once
#include <cufft.h>
