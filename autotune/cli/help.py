"""The text of ``-h``: commands in groups, values in words, and an example of each command."""

import re
from typing import Any

import typer

# The commands in groups, and of each its summary, which fits a line of 80 columns, and the words of its example.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Tune a kernel": {
        "sweep": ("Find the fastest correct config of a kernel", "--kernel ddc --problem taps=64,decimation=4"),
        "tune": (
            "Find the fastest config of a kernel in an existing .cu file",
            "scale.cu --kernel scale --size 4096 --arg out=zeros:float32:4096 \\\n"
            "      --arg x=random:float32:4096 --arg factor=2.5 --arg n=4096 \\\n"
            "      --param block_size_x=64,128,256",
        ),
        "campaign": (
            "Tune many problems, on all GPUs of one or many machines",
            "grid.toml --device cuda:0 --device cuda:1",
        ),
        "worker": (
            "Lend the GPUs of this machine to a campaign",
            "tls://host:8786 --tls-ca ca.pem --tls-cert worker.pem",
        ),
    },
    "Write a kernel": {
        "new": ("Write a kernel that works, to begin from", "scale"),
        "verify": ("Check configs of a kernel against its reference", "--kernel x.py --device host --all"),
        "render": ("Print the CUDA source of one config", "--kernel ddc --problem taps=64,decimation=4"),
        "list": ("List kernels, their problems and their parameters", "--kernel ddc"),
    },
    "Look at results": {
        "show": ("Show a sweep: the winner, its proof, what matters", "results/"),
        "report": ("Write sweeps as one HTML page with pictures", "results/ --out report.html"),
        "compare": ("Compare the winners of two sets of sweeps", "results/NVIDIA_H200 results/NVIDIA_H100_80GB_HBM3"),
        "export": ("Write all trials as CSV, Parquet, T4 and more", "results/ --out trials.csv"),
        "portfolio": ("Find a few configs that serve many problems", "results/ --kernel ddc --k 3"),
        "digest": ("Store the machine code of trials before you edit a kernel", "results/"),
        "pack": ("Turn records of older versions into today's form", "results/"),
    },
    "Use the winners": {
        "emit": ("Write the winners as a Python package", "results/ --out tuned"),
        "lookup": ("Show which config a package chooses, and why", "tuned --kernel ddc --problem taps=64,decimation=4"),
    },
    "Signals of a telescope": {
        "sky": ("Simulate the recordings of an array", "sky.toml --out night"),
        "array": ("Begin array.toml: which files are whose, and what they lack", "night/*.vdif --out night/array.toml"),
        "channelise": ("Turn a recording into voltages of channels", "scan.vdif --channels 1024 --out scan.h5"),
        "correlate": (
            "Turn recordings or voltages into visibilities",
            "night/ --channels 1024 --accumulate 16 --out night.h5",
        ),
        "dsim": ("Send the samples of a simulated digitiser by SPEAD", "dsim.toml"),
        "fengine": ("Run an F-engine on the network", "f.toml"),
        "xengine": ("Run an X-engine on the network", "x.toml"),
    },
    "This machine": {
        "doctor": ("Check GPU, driver and compilers, and say what to install", ""),
    },
}
GROUPS = {title: {name: summary for name, (summary, _) in of.items()} for title, of in COMMANDS.items()}
EXAMPLES = {name: f"autotune {name} {words}".rstrip() for of in COMMANDS.values() for name, (_, words) in of.items()}
WORDS = {"str": "TEXT", "path": "PATH", "int": "NUMBER", "float": "NUMBER"}
TYPE = re.compile(r"<(?:list\[)?(\w+)\]?(?: range)?>")


class HelpfulCommand(typer.core.TyperCommand):
    """A command whose help says what values are in words, and ends with an example."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of arguments and options."""
        records = [(param, param.get_help_record(ctx)) for param in self.get_params(ctx)]
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            own = [row for param, row in records if row and param.param_type_name == kind]
            rows = [(TYPE.sub(lambda found: WORDS.get(found[1].lower(), "TEXT"), name), text) for name, text in own]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example as it is typed, also where it has several lines."""
        if example := EXAMPLES.get(self.name or ""):
            formatter.write(f"\nExample:\n  {example}\n")


class CommandsInGroups(typer.core.TyperGroup):
    """The commands, grouped by purpose."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(10), summary) for name, summary in commands.items()])
