"""How host code launches a kernel: what grid and block are made of, and what cannot be followed."""

import itertools

import pytest

from autotune import UsageError
from autotune.porting.host_launch import HostLaunch, host_launch
from autotune.porting.named_kernel import kernel_name
from autotune.porting.source import KernelText

KERNEL = "__global__ void k(float* y, const float* x, int width, int height, float a) {}\n"
MACROS = """
#ifndef TX
#define TX 16
#endif
#define TY 4
#define N 1000
#define DIVUP(a, b) (((a) + (b) - 1) / (b))
"""
TUNED = {"TX": (16, 32, 7)}
SIZES = tuple(itertools.product(TUNED["TX"], (1, 16, 200, 1001), (1, 99)))


def launch_of(host: str, above: str = "", kernel: str = KERNEL, name: str = "k") -> HostLaunch:
    text = KernelText(MACROS + above + kernel + host)
    first = {parameter: values[0] for parameter, values in TUNED.items()}
    parameters = text.read(name, first).parameters
    return host_launch(text.text, text.name, kernel_name(name), parameters, {}, TUNED)


def evaluated(launch: HostLaunch, tx: int, width: int, height: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    names = {"TX": tx, "width": width, "height": height}
    assert launch.grid is not None
    grid, block = (tuple(eval(each, {}, dict(names)) for each in some) for some in (launch.grid, launch.block))
    assert all(type(each) is int for each in (*grid, *block))
    return grid, block, eval(launch.shared, {}, names)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


@pytest.mark.parametrize(
    ("host", "above"),
    [
        (
            "void f(float* y, int w, int h) { k<<<dim3(DIVUP(w, TX), DIVUP(h, TY)), dim3(TX, TY)>>>(y, y, w, h, 1); }",
            "",
        ),
        (
            "void run(float* y, int w, int h) {\n  dim3 block(TX, TY);\n"
            "  dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y, 1);\n"
            "  k<<<grid, block, 0, 0>>>(y, y, w, h, 1.f);\n}",
            "",
        ),
        (
            "struct S { int w, n; };\n"
            "void run(float* y, S s, long h) { k<<<dim3((s.w + TX - 1) / TX, DIVUP((int)h, TY)), dim3(TX, TY)>>>"
            "(y, y, s.w, (int)h, 1.f); }",
            "",
        ),
        (
            "dim3 blocks(int w, int h) { const unsigned a = DIVUP(w, TX), b = DIVUP(h, TY); return dim3(a, b); }\n"
            "void run(float* y, int w, int h) { k<<<blocks(w, h), dim3(TX, TY)>>>(y, y, w, h, 1); }",
            "",
        ),
        (
            "dim3 blocks(int w, int h) { return dim3(DIVUP(w, TX), DIVUP(h, TY)); }\n"
            "void run(float* y, long w, int h) {\n  dim3 g(blocks((int)w, h));\n"
            "  k<<<g, dim3(TX, TY)>>>(y, y, (int)w, h, 1.f);\n}",
            "",
        ),
        (
            "namespace a { static constexpr int ONE = 1;\n"
            "namespace b { int up(int n, int m) { return (n + m - a::ONE) / m; } } }\n"
            "void run(float* y, int w, int h) {\n  int g = 7; dim3 b(1, 1); g = a::b::up(w, TX); b = dim3(g, 9);\n"
            "  b.y = a::b::up(h, TY);\n  for (int i = 0; i < 3; i++) k<<<b, dim3(TX, TY)>>>(y, y, w, h, 1.f);\n}",
            "",
        ),
        (
            "void run(float* y, int w, int h) {\n  dim3 t{TX, TY}, b;\n  b.x = divUp(w, t.x);\n  b.y = divUp(h, TY);\n"
            "  k<<<b, t>>>(y, y, w, h, 1.f);\n}",
            "static inline int divUp(int a, int b) { return (a % b != 0) ? (a / b + 1) : (a / b); }\n",
        ),
        (
            "void run(float* y, int w, int h) {\n"
            "  const unsigned nx = (unsigned)ceil((float)w / TX), ny = ceil(h / 4.0);\n"
            "  dim3 b = dim3(nx, ny), t = {TX, TY};\n  for (int i = 0; i < 3; i++) k<<<b, t>>>(y, y, w, h, 1.f);\n}",
            "",
        ),
        *(
            (
                f"dim3 B(unsigned w, unsigned h) {{ const unsigned a = {cast}; return (dim3(a, DIVUP(h, TY))); }}\n"
                "void run(float* y, unsigned w, unsigned h) { dim3 t(TX, TY);\n"
                "  dim3 g = (B(w, h)); k<<<g, (t)>>>(y, y, w, h, 1.f); }",
                "",
            )
            for cast in (
                "unsigned(w + TX - 1) / TX",
                "static_cast<int>(w + TX - 1) / TX",
                "(unsigned)(w + TX - 1) / TX",
                "ceil(double(w + 0) / TX)",
            )
        ),
    ],
)
def test_grid_and_block_are_what_c_computes(host: str, above: str) -> None:
    launch = launch_of(host, above)
    for tx, width, height in SIZES:
        found = evaluated(launch, tx, width, height)
        assert found == ((ceil_div(width, tx), ceil_div(height, 4), 1), (tx, 4, 1), 0)


def test_a_macro_that_is_passed_stands_for_the_argument() -> None:
    launch = launch_of("int main() { float* y; k<<<(N + TX - 1) / TX, TX, TX * sizeof(float)>>>(y, y, N, 1, 2.f); }")
    for tx, width, height in SIZES:
        assert evaluated(launch, tx, width, height) == ((ceil_div(width, tx), 1, 1), (tx, 1, 1), 4 * tx)


def test_of_several_kernels_of_one_name_the_launch_is_the_one_that_is_meant() -> None:
    template = "template <class T, int B> __global__ void k(int n, T* y) {}\n"
    host = (
        "void r(int n, float* y, double* z) { k<float, 64><<<(n + 63) / 64, 64>>>(n, y);\n"
        "  k<double, 64><<<n, 64>>>(n, z); k<float, 256><<<(n + 255) / 256, 256>>>(n, y); }\n"
        "template <int C> void s(int n, short* y) { k<short, C><<<n / C, C, C * sizeof(short)>>>(n, y); }\n"
        "template <class U> void t(int n, U* y) { k<U, 7><<<n, 7, sizeof(U)>>>(n, y); }\n"
    )
    for name, grid, block, shared in (
        ("k<float, 64>", "(n + 63) // 64", "64", "0"),
        ("k<double, 64>", "n", "64", "0"),
        ("k<float, 256>", "(n + 255) // 256", "256", "0"),
        ("k<short, 32>", "n // 32", "32", "32 * 2"),
        ("k<double, 7>", "n", "7", "8"),
    ):
        launch = launch_of(host, kernel=template, name=name)
        assert (launch.grid, launch.block, launch.shared) == ((grid, "1", "1"), (block, "1", "1"), shared), name
    with pytest.raises(UsageError, match="has no launch of it by name"):
        launch_of(host, kernel=template, name="k<float, 128>")
    others = "__global__ void k(int n) {}\nvoid r(float* y) { k<<<9, 9>>>(7); k<<<N, TX>>>(y, y, N, 1, 2.f); }\n"
    cast = "static_cast<void (*)(float*, const float*, int, int, float)>(k)"
    assert launch_of(others, name=cast).block == ("TX", "1", "1")
    with pytest.raises(UsageError, match="several kernels k of 5 parameters"):
        launch_of(KERNEL.replace("float a", "double a") + others, name=cast)


def test_a_chain_of_casts_and_a_named_template_argument_are_followed() -> None:
    host = (
        "void r(int w) { int nb = (int)((float)((w + TX - 1) / TX)); int ny = (int)((nb + 65536 - 1) / 65536);\n"
        "  int nx = (int)((nb + ny - 1) / ny); dim3 g((int)((nx)), (ny), 1); k<<<g, TX>>>(0, 0, w, 1, 2.f); }"
    )
    for tx, width, height in SIZES:
        assert evaluated(launch_of(host), tx, width, height)[0] == (ceil_div(width, tx), 1, 1)
    template = "template <int B> __global__ void k(int n, float* y) {}\n"
    host = "void r(int n, float* y) { const int cta = 256; k<cta><<<n / (cta / 2), cta>>>(n, y); }\n"
    launch = launch_of(host, kernel=template, name="k<TX>")
    assert (launch.grid, launch.block) == (("n // (TX // 2)", "1", "1"), ("TX", "1", "1"))


def test_a_grid_in_blocks_is_told_with_its_divisor() -> None:
    launch = launch_of("void r(int m) { k<<<m, TX>>>(0, 0, N, 1, 2.f); }")
    assert launch.lacks.endswith(
        "by m, which is neither an argument nor a parameter (as a number of blocks: with --grid-div-x 1)"
    )


def test_of_several_launches_the_tuned_one_is_read() -> None:
    launch = launch_of("int main() { float* y; k<<<512, 64>>>(y, y, N, 1, 2.f); k<<<N / TX, TX>>>(y, y, N, 1, 2.f); }")
    assert launch.block == ("TX", "1", "1")


def test_the_place_is_that_of_the_launch() -> None:
    launch = launch_of("\n\nint main() { float* y; k<<<N, TX>>>(y, y, N, 1, 2.f); }")
    assert launch.place == f"kernel.cu:{(MACROS + KERNEL).count(chr(10)) + 3}"


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("int main() { }", "has no launch of it by name"),
        (
            "int main() { cudaDeviceProp p; k<<<p.multiProcessorCount, TX>>>(0, 0, N, 1, 2.f); }",
            "p.multiProcessorCount",
        ),
        ("int main() { int n = 5; n *= 2; k<<<n, TX>>>(0, 0, N, 1, 2.f); }", "n, which has several values"),
        ('int main() { int n = 5; scanf("%d", &n); k<<<n, TX>>>(0, 0, N, 1, 2.f); }', "n, which has several values"),
        ("int main(int c, char**) { dim3 g(1); if (c > 1) g.x = 7; k<<<g, TX>>>(0, 0, N, 1, 2.f); }", "g.x, which has"),
        (
            "int main(int c, char**) { int n = 1; if (c) { n = 7; } k<<<n, TX>>>(0, 0, N, 1, 2.f); }",
            "n, which has several",
        ),
        (
            "int main(int c, char**) { int n = 64; while (c--) { k<<<n, TX>>>(0, 0, N, 1, 2.f); n /= 2; } }",
            "n, which has several values",
        ),
        ("int main() { { int n = 3; } k<<<n, TX>>>(0, 0, N, 1, 2.f); }", "launches it by n,"),
        ("void r(int m) { use(&m); k<<<m, TX>>>(0, 0, N, 1, 2.f); }", "by m, which is neither"),
        ("void r(int width) { k<<<width, TX>>>(0, 0, N, 1, 2.f); }", "by width, a variable of the host code"),
        ("void r(float f) { k<<<f, TX>>>(0, 0, N, 1, f); }", "launches it by f,"),
        ("int main(int c, char** v) { int n = atoi(v[1]); k<<<n, TX>>>(0, 0, N, 1, 2.f); }", "v[1]"),
        ("int f(int n) { if (n) return 1; return 2; } int main() { k<<<f(3), TX>>>(0, 0, N, 1, 2.f); }", "f()"),
        ("int main() { int a = b, b = a; k<<<a, TX>>>(0, 0, N, 1, 2.f); }", "neither an argument nor a parameter"),
        (
            "#if TX > 8\n#define G 3\n#else\n#define G 4\n#endif\nint main() { k<<<G, TX>>>(0, 0, N, 1, 2.f); }",
            "condition",
        ),
    ],
)
def test_what_cannot_be_followed_is_named(host: str, why: str) -> None:
    try:
        launch = launch_of(host)
    except UsageError as error:
        assert why in str(error)
    else:
        assert launch.grid is None and launch.block == ("TX", "1", "1") and why in launch.lacks


def test_a_launch_is_read_in_parts() -> None:
    launch = launch_of("void r(int n) { int g = f(n), s = 4 * TX; k<<<g, dim3(TX, TY), s>>>(0, 0, n, 1, 2.f); }")
    assert (launch.grid, launch.block) == (None, ("TX", "4", "1")) and eval(str(launch.shared), {"TX": 8}) == 32
    assert "launches it by f()" in launch.lacks
    launch = launch_of(
        "void r(int n) { k<<<n, TX, sizeof(uint32_t) * sizeof(ushort4) / 8 * (TX + 1)>>>(0, 0, n, 1, 2.f); }"
    )
    assert eval(str(launch.shared), {"TX": 8}) == 36 and not launch.lacks_shared
    launch = launch_of("void r(int n) { k<<<n, TX, f(n)>>>(0, 0, n, 1, 2.f); }")
    assert (launch.grid, launch.shared) == (("width", "1", "1"), None)


def test_the_first_launch_that_can_be_followed_counts() -> None:
    unknown = "void a(int n) { cudaDeviceProp p; k<<<p.x, TX>>>(0, 0, n, 1, 2.f); }"
    host = unknown + "\nvoid b(int m) { k<<<m, TX>>>(0, 0, m, 1, 2.f); }"
    assert launch_of(host).grid == ("width", "1", "1")


def test_a_template_in_a_namespace_is_launched() -> None:
    kernel = "namespace fir { template <typename T> __global__ void s(T* y, int width) {} }\n"
    launch = launch_of("int main() { int n = 9; fir::s<float><<<n / TX, TX>>>(0, n); }", kernel=kernel, name="s<float>")
    assert launch.grid == ("width // TX", "1", "1")
