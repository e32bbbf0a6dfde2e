// Its functions are the host's; device code may use the types of the headers that it includes.
#pragma once
#include <cuComplex.h>
