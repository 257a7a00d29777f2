"""Start of `epochwatt --help` and of jobs, and a comparison of libraries for command lines.

The comparison takes one command line, twelve commands with five options each, in every library that
this Python can import: the cost of a start without our own imports.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.results import REPOSITORY, Result, Row, at_most
from epochwatt.errors import EpochwattError

BUDGET = at_most(100.0)
N_ROUNDS = 15
N_COMMANDS, N_OPTIONS = 12, 5
OURS = (
    ("epochwatt", "--help"),
    ("epochwatt", "plan", "--help"),
    ("epochwatt.twin", "--help"),
    ("epochwatt.training", "--help"),
)
ARGPARSE = """
{setup}
parser = argparse.ArgumentParser(prog="x"{formatter})
commands = parser.add_subparsers(required=True)
for i in range({n_commands}):
    command = commands.add_parser(f"command{{i}}", help="a command"{formatter})
    for k in range({n_options}):
        command.add_argument(f"--option{{k}}", type=int, default=3, help="an option")
{finish}
parser.parse_args()
"""
CLICK = """
import {module} as click
main = click.Group("x")
for i in range({n_commands}):
    options = [
        click.Option([f"--option{{k}}"], type=int, default=3, help="an option")
        for k in range({n_options})
    ]
    main.add_command(click.Command(f"command{{i}}", params=options, help="A command."))
main()
"""
ANNOTATED = """
from typing import Annotated
import {module}
app = {module}.{app}()
"""
FUNCTION = """
@app.command(name="command{i}")
def command{i}(*, {options}):
    "A command."
"""


def apps() -> dict[str, str]:
    """Return library -> source of the command line, for the libraries that can be imported."""
    plain = {"setup": "import argparse", "formatter": "", "finish": ""}
    rich = "from rich_argparse import RichHelpFormatter"
    sources = {
        "argparse": ARGPARSE.format(**plain, **SIZE),
        "argcomplete": ARGPARSE.format(
            **plain | {"finish": "import argcomplete\nargcomplete.autocomplete(parser)"}, **SIZE
        ),
        "shtab": ARGPARSE.format(**plain | {"finish": "import shtab"}, **SIZE),
        "rich_argparse": ARGPARSE.format(
            setup=f"import argparse\n{rich}",
            formatter=", formatter_class=RichHelpFormatter",
            finish="",
            **SIZE,
        ),
        "click": CLICK.format(module="click", **SIZE),
        "rich_click": CLICK.format(module="rich_click", **SIZE),
        "typer": _annotated("typer", "Typer", "Option"),
        "cyclopts": _annotated("cyclopts", "App", "Parameter"),
    }
    return {name: text for name, text in sources.items() if importlib.util.find_spec(name)}


SIZE = {"n_commands": N_COMMANDS, "n_options": N_OPTIONS}


def _annotated(module: str, app: str, option: str) -> str:
    options = ", ".join(
        f"option{k}: Annotated[int, {module}.{option}(help='an option')] = 3"
        for k in range(N_OPTIONS)
    )
    functions = (FUNCTION.format(i=i, options=options) for i in range(N_COMMANDS))
    return ANNOTATED.format(module=module, app=app) + "".join(functions) + "\napp()\n"


def run(quick: bool = False) -> Result:
    """Start each in turn, after a bare Python; `quick` only shows that it works."""
    with tempfile.TemporaryDirectory() as folder:
        starts = {f"{words[0]} {' '.join(words[1:])}": ["-m", *words] for words in OURS}
        for name, text in apps().items():
            (Path(folder) / f"app_{name}.py").write_text(text, "utf-8")
            starts[f"{name}: --help"] = ["-m", f"app_{name}", "--help"]
        for words in starts.values():  # untimed: byte code
            start_ms(words, folder)
        bare: list[float] = []
        times: dict[str, list[float]] = {name: [] for name in starts}
        ratios: dict[str, list[float]] = {name: [] for name in starts}
        for _ in range(1 if quick else N_ROUNDS):
            for name, words in starts.items():
                bare.append(start_ms(["-c", "pass"], folder))
                times[name].append(start_ms(words, folder))
                ratios[name].append(times[name][-1] / bare[-1])
    rows = [Row("a bare Python: -c pass", bare, "ms", 1)]
    for name in starts:
        budget = BUDGET if name.startswith("epochwatt --help") else None
        rows += [Row(name, times[name], "ms", 1, budget), Row("  / bare", ratios[name], "", 2)]
    return Result(rows)


def start_ms(words: list[str], folder: str) -> float:
    """Return the wall time of a Python that starts, prints and ends, in ms."""
    paths = f"{REPOSITORY / 'src'}{os.pathsep}{folder}"
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONPYCACHEPREFIX": f"{folder}/bytes"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )
    wall_ms = 1e3 * (time.perf_counter() - start_s)
    if done.returncode:
        raise EpochwattError(f"python {' '.join(words)} failed", found=done.stderr)
    return wall_ms
