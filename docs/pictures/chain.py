"""The chain from samples to visibilities: which kernel makes what of what."""

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, TEAL, Picture

HEIGHT = 58


def picture() -> str:
    p = Picture(1000, 520, "The chain: from samples to visibilities")
    p.text(24, 34, "From samples to visibilities", "title")
    p.text(24, 56, "Kernels are in colour, data between them in words.", "muted")
    _wide(p, 92)
    _narrow(p, 232)
    _correlator(p, 372)
    return p.svg()


def _kernel(p: Picture, x: float, y: float, width: float, fill: str, name: str, does: str) -> float:
    """Returns where the box ends."""
    p.labelled(x, y, width, HEIGHT, fill, (name, does))
    return x + width


def _data(p: Picture, x: float, y: float, width: float, *lines: str) -> float:
    """An arrow with what flows along it; returns where it ends."""
    middle = y + HEIGHT / 2
    p.arrow((x + 3, middle), (x + width - 3, middle))
    p.text(x + width / 2, middle - 8, lines[0], "small", anchor="middle")
    for i, line in enumerate(lines[1:]):
        p.text(x + width / 2, middle + 18 + 15 * i, line, "small muted", anchor="middle")
    return x + width


def _from_above(p: Picture, x: float, y: float, text: str) -> None:
    p.text(x, y - 24, text, "small", anchor="middle")
    p.arrow((x, y - 19), (x, y - 2))


def _wide(p: Picture, y: float) -> None:
    y += 26
    p.text(24, y - 24, "wide band", "bold")
    x = _data(p, 24, y, 116, "samples x", "10 bits, packed")
    _from_above(p, x + 78, y, "offsets: whole samples late")
    x = _kernel(p, x, y, 156, BLUE, "pfb_fir", "weighted sums")
    x = _data(p, x, y, 84, "real", "float32")
    x = _kernel(p, x, y, 130, GREY, "real FFT", "L = 2 C points")
    x = _data(p, x, y, 84, "spectra", "complex64")
    _from_above(p, x + 88, y, "fine delays, phases, gains")
    x = _kernel(p, x, y, 176, GREEN, "postproc", "rotate, scale, round")
    _data(p, x, y, 186, "voltages v", "8 or 4 bits, time-fastest")
    p.text(x - 88, y + HEIGHT + 18, "saturated: counts", "small muted", anchor="middle")


def _narrow(p: Picture, y: float) -> None:
    y += 26
    p.text(24, y - 36, "narrow band", "bold")
    x = _data(p, 24, y, 96, "samples x", "10 bits")
    _from_above(p, x + 75, y, "mixing frequency, phase")
    x = _kernel(p, x, y, 150, ORANGE, "ddc", "mix, filter, decimate")
    x = _data(p, x, y, 84, "baseband", "complex64")
    _from_above(p, x + 62, y, "offsets: outputs")
    x = _kernel(p, x, y, 124, BLUE, "pfb_fir", "complex")
    x = _data(p, x, y, 44, "")
    x = _kernel(p, x, y, 118, GREY, "complex FFT", "L = C points")
    x = _data(p, x, y, 70, "spectra")
    _from_above(p, x + 70, y, "delays, phases, gains")
    x = _kernel(p, x, y, 140, GREEN, "postproc", "nyquist = 0")
    _data(p, x, y, 128, "voltages v", "8 or 4 bits")


def _correlator(p: Picture, y: float) -> None:
    p.line((24, y - 24), (976, y - 24), dashed=True)
    y += 26
    p.text(24, y - 24, "correlator", "bold")
    x = _data(p, 24, y, 196, "voltages of all receivers", "layout blocks or batches")
    x = _kernel(p, x, y, 190, PURPLE, "correlate", "all pairs, integrated")
    x = _data(p, x, y, 150, "accumulators", "int64, one set a slice")
    _from_above(p, x + 95, y, "which baselines are present")
    x = _kernel(p, x, y, 190, TEAL, "accumulate", "add slices, clip, clear")
    _data(p, x, y, 206, "visibilities V", "32 bits, 4 products a baseline")
    p.text(x - 95, y + HEIGHT + 18, "saturated: counts", "small muted", anchor="middle")
    p.text(
        24,
        y + HEIGHT + 48,
        "FFTs are cuFFT's on a GPU, NumPy's on the device host. With overwrites, correlate writes visibilities itself.",
        "small muted",
    )
