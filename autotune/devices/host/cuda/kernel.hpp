// A kernel made callable with an array of pointers to its arguments, and its parameters made known.
#pragma once

namespace cuda_host {

template <auto kernel>
struct Export;

template <class... Parameters, void (*kernel)(Parameters...)>
struct Export<kernel> {
    static_assert(sizeof...(Parameters) <= max_parameters, "too many kernel parameters");

    template <class T>
    static constexpr char kind = std::is_pointer<T>::value || std::is_reference<T>::value ? 'p' : std::is_floating_point<T>::value ? 'f' : std::is_integral<T>::value ? 'i' : 's';

    // A copy on the stack, from which a constructor of the user's may read.
    template <class T>
    struct Given {
        alignas(alignof(T)) char bytes[sizeof(T)];
        __attribute__((no_sanitize("thread"), no_sanitize("undefined"))) explicit Given(const void* argument) {
            __builtin_memcpy(bytes, argument, sizeof(T));
        }
        T& value() { return *reinterpret_cast<T*>(bytes); }
    };
    template <class T>
    struct Given<T&> {  // an array's address is given for it
        T* at;
        __attribute__((no_sanitize("thread"), no_sanitize("undefined"))) explicit Given(const void* argument) {
            __builtin_memcpy(&at, argument, sizeof at);
        }
        T& value() { return *at; }
    };

    template <size_t... position>
    __attribute__((no_sanitize("thread"), no_sanitize("undefined"))) static void expand(
        void** arguments, std::index_sequence<position...>) {
        kernel(Given<Parameters>(arguments[position]).value()...);
    }
    static void call(void** arguments) { expand(arguments, std::index_sequence_for<Parameters...>()); }

    static KernelInfo info() {
        KernelInfo result{&call, int(sizeof...(Parameters)), {}, {}, 0, 0};
        int i = 0;
        ((result.sizes[i] = int(std::is_reference<Parameters>::value ? sizeof(void*) : sizeof(Parameters)), result.kinds[i++] = kind<Parameters>), ...);
        return result;
    }
};

}  // namespace cuda_host

#define CUDA_HOST_ALLOWED 0  // another number where the source allows something
// What follows the kernel: the most threads of a block, from its launch bounds; nothing if it has none.
#define CUDA_HOST_EXPORT(name, kernel, ...)                                                               \
    extern "C" __attribute__((visibility("default"))) void cuda_host_describe_##name(                       \
        cuda_host::KernelInfo* info) {                                                                    \
        *info = cuda_host::Export<&cuda_user::kernel>::info();                                             \
        info->most_threads = (__VA_ARGS__ + 0);                                                            \
        info->allowed = CUDA_HOST_ALLOWED;                                                                 \
    }
