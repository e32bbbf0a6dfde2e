"""Tunes the kernel of ../diffuse_cu as a definition: two problems, any size, one package.

    python examples/diffuse/tune.py [DEVICE]

docs/from-cu-to-definition.md leads from that .cu file to diffuse.py and diffuse.cu.j2.
"""

import sys
from pathlib import Path

import numpy as np

import autotune

DEFINITION = str(Path(__file__).with_name("diffuse.py"))
ONLY = ()  # values to which the search is restricted: ("BLOCK_X=32", "BLOCK_X=64") leaves out 16


def main(device: str = "auto") -> None:
    sweeps = {}
    for edges in ("closed", "cold"):
        sweep = sweeps[edges] = autotune.sweep(DEFINITION, problem={"edges": edges}, device=device, only=ONLY)
        print(f"{edges} edges: {sweep.best.config} is {sweep.speed_up:.2f} times as fast as the default")

    # This is one launch, at the size of the arrays. The float arguments are among the inputs.
    before = np.zeros((3, 5), np.float32)
    before[1, 2] = 100.0
    inputs = {"before": before, "source": np.zeros_like(before), "rate": np.float32(0.2), "step_s": np.float32(0.01)}
    cold = {"problem": {"edges": "cold"}, "config": sweeps["cold"].best.config}
    print(autotune.run(DEFINITION, inputs=inputs, **cold, device=device)["after"].round(3))

    # One package holds both. It needs the baked field, and takes plates of any size.
    package = autotune.emit([sweep.path for sweep in sweeps.values()], "tuned", kernels=[DEFINITION])
    sys.path.insert(0, str(package.parent))
    import tuned

    (name,) = set(autotune.load(sweeps["cold"].path)["device"])  # all recorded trials, as a DataFrame
    print(tuned.diffuse(edges="cold", width=3840, height=2160, device=name).choice)  # the config, and why


if __name__ == "__main__":
    main(*sys.argv[1:2])
