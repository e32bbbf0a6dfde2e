// Nothing of it can be called in device code: files that hold both sides include it.
#pragma once
#define _POSIX_VERSION 200809L
