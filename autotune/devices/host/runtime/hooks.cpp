// The functions that a kernel of the check build calls. It is compiled with -fsanitize=thread and -fsanitize=undefined,
// but linked with neither sanitizer's library: the compiler's calls end here.
#include <string.h>

#include "checker.hpp"

using namespace cuda_host;

#define HERE place_of(__builtin_return_address(0))

extern "C" {

// ---------------------------------------------------------------- accesses that the compiler cannot see
void cuda_host_note_cas(const void* p, unsigned n, Site site) {
    if (launch.options.check) check_access(p, n, Access::cas, place_of(site));
}
void cuda_host_note_atomic(const void* p, unsigned n, Site site) {
    if (launch.options.check) check_access(p, n, Access::atomic, place_of(site));
}
void cuda_host_note_read(const void* p, unsigned n, Site site) {
    if (launch.options.check) check_access(p, n, Access::read, place_of(site));
}
void cuda_host_note_write(const void* p, unsigned n, Site site) {
    if (launch.options.check) check_access(p, n, Access::write, place_of(site));
}

// ---------------------------------------------------------------- -fsanitize=thread: every load and store
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void*) {}

#define ACCESS(prefix, n)                                                                     \
    void __tsan_##prefix##read##n(void* p) { check_access(p, n, Access::read, HERE); }        \
    void __tsan_##prefix##write##n(void* p) { check_access(p, n, Access::write, HERE); }
#define ACCESSES(n) ACCESS(, n) ACCESS(unaligned_, n) ACCESS(volatile_, n) ACCESS(unaligned_volatile_, n)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_vptr_read(void** p) { check_access(p, sizeof *p, Access::read, HERE); }
void __tsan_vptr_update(void** p, void*) { check_access(p, sizeof *p, Access::write, HERE); }

void __tsan_read_range(void* p, unsigned long n) { check_access(p, n, Access::read, HERE); }
void __tsan_write_range(void* p, unsigned long n) { check_access(p, n, Access::write, HERE); }

// clang calls these for what g++ leaves to memcpy
void* __tsan_memset(void* to, int value, unsigned long n) {
    check_access(to, n, Access::write, HERE);
    return memset(to, value, n);
}
void* __tsan_memcpy(void* to, const void* from, unsigned long n) {
    check_access(from, n, Access::read, HERE);
    check_access(to, n, Access::write, HERE);
    return memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, unsigned long n) {
    check_access(from, n, Access::read, HERE);
    check_access(to, n, Access::write, HERE);
    return memmove(to, from, n);
}

// ---------------------------------------------------------------- -fsanitize=undefined: what C++ leaves open
}
static void undefined(const char* what, const void* return_address) {
    if (current) fail("%s %s", what, text_of(place_of(return_address)).c_str());
}
extern "C" {

struct TypeMismatch {  // as the compiler lays it out
    struct {
        const char* file;
        unsigned line, column;
    } location;
    struct {
        unsigned short kind, information;
        char name[1];
    } const* type;
    unsigned char log2_alignment, access;
};
void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, unsigned long address) {
    const unsigned long alignment = 1ul << data->log2_alignment;
    std::string what;
    if (!address)
        what = text("access through a null pointer to %s", data->type->name);
    else if (address % alignment)
        what = text("misaligned address: %s needs a multiple of %lu, this is one of %lu", data->type->name, alignment,
                    address & -address);
    else
        what = text("the object is too small for %s", data->type->name);
    undefined(what.c_str(), __builtin_return_address(0));
}

#define UNDEFINED(name, what) \
    void __ubsan_handle_##name(void*) { undefined(what, __builtin_return_address(0)); }
UNDEFINED(out_of_bounds, "index outside the bounds of an array")
UNDEFINED(shift_out_of_bounds, "shift by a negative count, or by the width of the type or more")
#define WRAPS " (undefined in C++; if it is meant to wrap as on a GPU, define AUTOTUNE_INTS_WRAP: -D AUTOTUNE_INTS_WRAP=1)"
UNDEFINED(add_overflow, "signed overflow in an addition" WRAPS)
UNDEFINED(sub_overflow, "signed overflow in a subtraction" WRAPS)
UNDEFINED(mul_overflow, "signed overflow in a multiplication" WRAPS)
UNDEFINED(negate_overflow, "signed overflow in a negation" WRAPS)
UNDEFINED(divrem_overflow, "division by zero, or overflow in a division")
UNDEFINED(pointer_overflow, "overflow in the arithmetic of a pointer")
UNDEFINED(load_invalid_value, "a bool or an enum holds a value that it cannot have")
UNDEFINED(float_cast_overflow, "a floating-point value does not fit the integer type")
UNDEFINED(vla_bound_not_positive, "the bound of an array is not positive")
UNDEFINED(nonnull_arg, "a null pointer where none is allowed")
UNDEFINED(nonnull_return_v1, "a null pointer is returned where none is allowed")
UNDEFINED(builtin_unreachable, "code that was declared unreachable is reached")
UNDEFINED(missing_return, "a function ends without returning its value")
UNDEFINED(invalid_builtin, "a bit count of zero, whose result is undefined")

}
