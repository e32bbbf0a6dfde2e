"""The text of ``-h``: commands in groups, values in words, and an example of each command."""

import re
from typing import Any

import typer

# Commands grouped by purpose, each with a summary that fits a line of 80 columns.
GROUPS: dict[str, dict[str, str]] = {
    "Tune a kernel": {
        "sweep": "Find the fastest correct config of a kernel",
        "tune": "Find the fastest config of a kernel in an existing .cu file",
        "campaign": "Tune many problems, on all GPUs of one or many machines",
        "worker": "Lend the GPUs of this machine to a campaign",
    },
    "Write a kernel": {
        "new": "Write a kernel that works, to begin from",
        "verify": "Check configs of a kernel against its reference",
        "render": "Print the CUDA source of one config",
        "list": "List kernels, their problems and their parameters",
    },
    "Look at results": {
        "show": "Show a sweep: the winner, its proof, what matters",
        "report": "Write sweeps as one HTML page with pictures",
        "compare": "Compare the winners of two sets of sweeps",
        "export": "Write all trials as CSV, Parquet, T4 and more",
        "portfolio": "Find a few configs that serve many problems",
        "replay": "Repeat recorded searches with other samplers",
        "digest": "Store the machine code of trials before you edit a kernel",
        "pack": "Turn records of older versions into today's form",
    },
    "Use the winners": {
        "emit": "Write the winners as a Python package",
        "lookup": "Show which config a package chooses, and why",
    },
    "Signals of a telescope": {
        "sky": "Simulate the recordings of an array",
        "array": "Begin array.toml: which files are whose, and what they lack",
        "channelise": "Turn a recording into voltages of channels",
        "correlate": "Turn recordings or voltages into visibilities",
        "dsim": "Send the samples of a simulated digitiser by SPEAD",
        "fengine": "Run an F-engine on the network",
        "xengine": "Run an X-engine on the network",
    },
    "This machine": {
        "doctor": "Check GPU, driver and compilers, and say what to install",
    },
}
EXAMPLES: dict[str, str] = {
    "array": "autotune array night/*.vdif --out night/array.toml",
    "campaign": "autotune campaign grid.toml --device cuda:0 --device cuda:1",
    "channelise": "autotune channelise scan.vdif --channels 1024 --out scan.h5",
    "compare": "autotune compare results/NVIDIA_H200 results/NVIDIA_H100_80GB_HBM3",
    "correlate": "autotune correlate night/ --channels 1024 --accumulate 16 --out night.h5",
    "digest": "autotune digest results/",
    "doctor": "autotune doctor",
    "dsim": "autotune dsim dsim.toml",
    "emit": "autotune emit results/ --out tuned",
    "export": "autotune export results/ --out trials.csv",
    "fengine": "autotune fengine f.toml",
    "list": "autotune list --kernel ddc",
    "lookup": "autotune lookup tuned --kernel ddc --problem taps=64,decimation=4",
    "new": "autotune new scale",
    "pack": "autotune pack results/",
    "portfolio": "autotune portfolio results/ --kernel ddc --k 3",
    "render": "autotune render --kernel ddc --problem taps=64,decimation=4",
    "replay": "autotune replay results/NVIDIA_H200/ddc --sampler gp",
    "report": "autotune report results/ --out report.html",
    "show": "autotune show results/",
    "sky": "autotune sky sky.toml --out night",
    "sweep": "autotune sweep --kernel ddc --problem taps=64,decimation=4",
    "tune": "autotune tune scale.cu --kernel scale --size 4096 --arg out=zeros:float32:4096 \\\n"
    "      --arg x=random:float32:4096 --arg factor=2.5 --arg n=4096 \\\n"
    "      --param block_size_x=64,128,256",
    "verify": "autotune verify --kernel x.py --device host --all",
    "worker": "autotune worker tls://host:8786 --tls-ca ca.pem --tls-cert worker.pem",
    "xengine": "autotune xengine x.toml",
}
WORDS = {"str": "TEXT", "path": "PATH", "int": "NUMBER", "float": "NUMBER"}
TYPE = re.compile(r"<(?:list\[)?(\w+)\]?(?: range)?>")


class HelpfulCommand(typer.core.TyperCommand):
    """A command whose help says what values are in words, and ends with an example."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of arguments and options."""
        records = [(param, param.get_help_record(ctx)) for param in self.get_params(ctx)]
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            rows = [(_in_words(row[0]), row[1]) for param, row in records if row and param.param_type_name == kind]
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


def _in_words(name: str) -> str:
    return TYPE.sub(lambda match: WORDS.get(match[1].lower(), "TEXT"), name)
