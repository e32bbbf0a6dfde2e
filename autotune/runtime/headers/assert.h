// assert is built into NVRTC. With NDEBUG it does nothing, as in C.
#ifdef NDEBUG
#undef assert
#define assert(condition) ((void)0)
#endif
