"""Runs the notebooks beside this file and stores their small outputs: `python docs/notebooks/run.py`.

Pictures are left out: they are large, and are drawn by a script. So are numbers of runs and times of cells.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
DEADLINE_S = 120
SMALL = ("text/plain", "text/html")
PICTURE = "application/vnd.plotly.v1+json"


def ran(path: Path) -> nbformat.NotebookNode:
    """Returns a notebook with the outputs of a run.

    Raises:
        nbclient.exceptions.CellExecutionError: when a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=DEADLINE_S, resources={"metadata": {"path": path.parent}}).execute()
    return notebook


def stored(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Returns it with its small outputs only."""
    for cell in notebook.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [_small(output) for output in cell.outputs if _is_small(output)]
    return notebook


def _is_small(output: nbformat.NotebookNode) -> bool:
    return output.output_type == "execute_result" and PICTURE not in output.data


def _small(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    data = {kind: output.data[kind] for kind in SMALL if kind in output.data}
    return nbformat.v4.new_output("execute_result", data=data)


def main() -> None:
    for path in sorted(HERE.glob("*.ipynb")):
        nbformat.write(stored(ran(path)), path)


if __name__ == "__main__":
    sys.exit(main())
