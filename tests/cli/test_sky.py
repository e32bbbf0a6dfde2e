"""`autotune sky`: the folder to stdout, progress to stderr, one line for what is wrong."""

from pathlib import Path

from autotune.engines.files.opening import open_samples

from ..commands import autotune

SKY = """
sample_rate_hz = 1e6
sample_bits = 8
n_pols = 1
n_samples = 4096
noise = {level = 20}
phase_centre = {hour_angle_deg = 0, declination_deg = 0}
array = {layout = "east-west", n_antennas = 2, spacing_m = 10, latitude_deg = 0, longitude_deg = 0}
"""


def test_a_sky_is_recorded_once(tmp_path: Path) -> None:
    (tmp_path / "sky.toml").write_text(SKY)
    night = tmp_path / "night"
    words = ["sky", str(tmp_path / "sky.toml"), "--out", str(night)]
    refused = autotune(*words)
    assert refused.returncode == 2 and "give --seed 1" in refused.stderr and not night.exists()
    done = autotune(*words, "--seed", "5")
    assert (done.returncode, done.stdout) == (0, f"{night}\n"), done.stderr
    assert "2 antennas, 1 polarisations, 4096 samples of 8 bits (0.004096 s)" in done.stderr
    assert open_samples(night / "m001.toml").info.n_samples == 4096
    again = autotune(*words, "--seed", "5")
    assert again.returncode == 2 and "it is not empty" in again.stderr and again.stderr.count("\n") == 1
