"""What kernels of public CUDA files must compute, in a few lines of NumPy each: the answers of public_files.py.

Each function takes the arguments of a call and the sizes of its entry, and returns what each output must hold after the
launch, by its place among the arguments. Outputs of which a launch writes a part begin as zeros.
"""

from typing import Any

import numpy as np

Answered = dict[int, Any]
Given = list[Any]
Sizes = dict[str, int]


def five_points(a: Given, s: Sizes) -> Answered:
    old, new = a[1].reshape(-1, 4096), a[0].reshape(-1, 4096).copy()
    w, h = min(s["w"], 4095), min(s["h"], 2047)
    y, x = slice(1, h), slice(1, w)
    around = old[: h - 1, x] + old[2 : h + 1, x] + old[y, : w - 1] + old[y, 2 : w + 1]
    new[y, x] = (old[y, x] + around) / 5
    return {0: new.ravel()}


def correlated(image: Any, weights: Any, w: int, h: int) -> Any:
    """Returns the sums of the image under the weights, at each place of h rows and w columns."""
    places = np.ndindex(*weights.shape)
    return sum(float(weights[y, x]) * image[y : y + h, x : x + w].astype(float) for y, x in places)


def correlated_by_17(a: Given, s: Sizes) -> Answered:
    """The weights are those in constant memory, which a call has after its arguments."""
    out, w = a[0].reshape(-1, 4096).copy(), s["w"]
    out[:, :w] = correlated(a[1].reshape(-1, 4112), a[-1].reshape(17, 17), w, s["h"])
    return {0: out.ravel()}


def correlated_by_constants(a: Given, s: Sizes) -> Answered:
    """The output is as large as the grid, and the image 16 longer and wider."""
    image = a[1].reshape(s["h"] + 16, s["w"] + 16)
    out = correlated(image, a[-1].reshape(17, 17), s["w"], s["h"])
    return {0: np.asarray(out, np.float32).ravel()}


def correlated_by_7(a: Given, s: Sizes) -> Answered:
    image = a[2].reshape(s["h"] + 6, s["w"] + 6)
    out = correlated(image, a[3].reshape(7, 7), s["w"], s["h"])
    return {4: np.asarray(out, np.float32).ravel()}


def product_of_4096(a: Given, s: Sizes) -> Answered:
    out, left, right = (array.reshape(-1, 4096) for array in a[:3])
    out = out.copy()
    out[:, : s["w"]] = left @ right[:, : s["w"]]
    return {0: out.ravel()}


def rows_of_32(a: Given, s: Sizes) -> Answered:
    return {0: (a[3] * a[4][a[2]]).reshape(-1, 32).sum(axis=1)}


def without_means_of_columns(a: Given, s: Sizes) -> Answered:
    image = a[2].reshape(s["h"], s["w"]).astype(float)
    for first in (0, 1):
        image[first::2] -= image[first::2].mean(axis=0)
    return {2: image.astype(np.float32).ravel()}


def a_step_of_heat(a: Given, s: Sizes) -> Answered:
    power, heat = (array.reshape(s["h"] + 20, s["w"] + 20).astype(float) for array in a[:2])
    along_x, along_y, to_air, step = (float(number) for number in a[3:])
    y, x, here = slice(10, -10), slice(10, -10), heat[10:-10, 10:-10]
    flow = along_y * (heat[11:-9, x] + heat[9:-11, x] - 2 * here) + along_x * (
        heat[y, 11:-9] + heat[y, 9:-11] - 2 * here
    )
    out = here + step * (power[y, x] + flow + to_air * (80 - here))
    return {2: out.astype(np.float32).ravel()}


def dedispersed(a: Given, s: Sizes) -> Answered:
    samples, out = a[0].reshape(1536, 25650), a[1].reshape(s["h"], 25000).copy()
    for dm in range(s["h"]):
        delays = (np.float32(dm) * np.float32(0.02) * a[2]).astype(int)
        out[dm, : s["w"]] = sum(
            row[delay : delay + s["w"]].astype(int) for row, delay in zip(samples, delays, strict=True)
        )
    return {1: out.ravel()}


def product_of_transposed(a: Given, s: Sizes) -> Answered:
    left, right = (array.reshape(s["n"], s["n"]) for array in a[5:7])
    return {7: (right.T @ left).ravel()}


def potential_of_atoms(a: Given, s: Sizes) -> Answered:
    z, y, x = np.indices((s["g"],) * 3) * float(a[6])
    atoms = zip(*a[1:5], strict=True)
    total = sum(float(q) / np.sqrt((x - ax) ** 2 + (y - ay) ** 2 + (z - az) ** 2) for ax, ay, az, q in atoms)
    return {8: np.asarray(total, np.float32).ravel()}


def products_both_ways(a: Given, s: Sizes) -> Answered:
    matrix = a[0].reshape(s["n"], s["m"])
    return {2: matrix @ a[1], 4: a[3] @ matrix}


def transposed(a: Given, s: Sizes) -> Answered:
    return {0: a[1].reshape(s["n"], s["n"]).T.ravel()}


def transposed_rows(a: Given, s: Sizes) -> Answered:
    return {4: a[2].reshape(s["h"], s["w"]).T.ravel()}


def sum_of_all(a: Given, s: Sizes) -> Answered:
    return {1: np.array([a[0].sum(dtype=float)], np.float32)}


def delayed_sums(a: Given, s: Sizes) -> Answered:
    rows = a[7].reshape(s["r"], s["t"])
    first, second = a[6].reshape(-1, 2).T
    out = rows[first].copy()
    for row, (delay, other) in enumerate(zip(a[5], second, strict=True)):
        out[row, delay:] += rows[other, : s["t"] - delay]
    return {10: out.ravel()}


def layer_normed(a: Given, s: Sizes) -> Answered:
    rows = a[3].reshape(s["n"], s["c"]).astype(float)
    mean, scale = rows.mean(axis=1), 1 / np.sqrt(rows.var(axis=1) + 1e-5)
    out = (rows - mean[:, None]) * scale[:, None] * a[4] + a[5]
    return {0: out.astype(np.float32).ravel(), 1: mean.astype(np.float32), 2: scale.astype(np.float32)}


def softmax_of_rows(a: Given, s: Sizes) -> Answered:
    rows = np.exp(a[1].reshape(s["n"], s["c"]).astype(float))
    return {0: (rows / rows.sum(axis=1, keepdims=True)).astype(np.float32).ravel()}


def product(a: Given, s: Sizes) -> Answered:
    left, right = (array.reshape(s["n"], s["n"]) for array in a[1:3])
    return {0: (left @ right).ravel()}
