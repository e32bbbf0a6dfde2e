// Its functions are those of the host; device code needs what cufft.h has.
#pragma once
#include <cufft.h>
