// What the host device cannot do. Its name says so where it is used, in one line.
#pragma once

namespace cuda_host {
template <class... Arguments>
constexpr bool never = false;
}

#define CUDA_HOST_REFUSED(name, what)                                                   \
    template <class T = int, class... Arguments>                                        \
    CUDA_HOST_INLINE T name(Arguments...) {                                             \
        static_assert(cuda_host::never<Arguments...>, "the host device has no " what);  \
        return T();                                                                     \
    }

namespace cuda_user {
inline namespace {

typedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t;
CUDA_HOST_REFUSED(tex1Dfetch, "textures")
CUDA_HOST_REFUSED(tex1D, "textures")
CUDA_HOST_REFUSED(tex2D, "textures")
CUDA_HOST_REFUSED(tex2DLod, "textures")
CUDA_HOST_REFUSED(tex2DLayered, "textures")
CUDA_HOST_REFUSED(tex3D, "textures")
CUDA_HOST_REFUSED(texCubemap, "textures")
CUDA_HOST_REFUSED(tex2Dgather, "textures")
CUDA_HOST_REFUSED(surf1Dread, "surfaces")
CUDA_HOST_REFUSED(surf1Dwrite, "surfaces")
CUDA_HOST_REFUSED(surf2Dread, "surfaces")
CUDA_HOST_REFUSED(surf2Dwrite, "surfaces")
CUDA_HOST_REFUSED(surf3Dread, "surfaces")
CUDA_HOST_REFUSED(surf3Dwrite, "surfaces")

}  // namespace
}  // namespace cuda_user
