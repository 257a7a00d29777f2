"""The command line: `epochwatt COMMAND`; `--help` lists them. Only command lines print."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from epochwatt import __version__
from epochwatt.cli.command import Group
from epochwatt.cli.maintain import bug_report, calibrate_twin, completion, init
from epochwatt.cli.measure import (
    discard,
    doctor,
    fleet_check,
    import_log,
    plan,
    run,
    serve_and_train,
)
from epochwatt.cli.predict import count, fit, profile, recommend, rounds, schedule, score, what_if
from epochwatt.cli.results import compare, explain, page, report, summary
from epochwatt.cli.share import convert_sweep, export, sweeps, validate
from epochwatt.errors import EpochwattError
from epochwatt.project import how_to_get_a_folder, is_studied_here
from epochwatt.text import printable

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Measure": (plan, doctor, fleet_check, run, import_log, discard, serve_and_train),
    "Look at results": (summary, page, report, compare, explain),
    "Simulate and predict": (what_if, fit, recommend, profile, schedule, rounds, score, count),
    "Sweeps of modes": (sweeps, convert_sweep),
    "Share data": (export, validate),
    "Maintain": (init, bug_report, calibrate_twin, completion),
}
OLD_NAMES = {"bundle": "bug-report"}


@click.command(
    cls=Group,
    sections=SECTIONS,
    old_names=OLD_NAMES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(version)s")
def epochwatt() -> None:
    """Measure, simulate and predict how long a training epoch takes on NVIDIA Jetson
    boards, and how much energy it needs.

    Run it in your checkout, or in a folder that `epochwatt init` made: where config/ is. `make run`
    does the whole work in a checkout, `snakemake --profile profiles/host` anywhere; these commands
    show what it will do, what came out, and answer questions.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 1 after a known error, 2 after a wrong usage."""
    words = None if arguments is None else list(arguments)
    if Path("src").is_dir():  # networks, data sets and figures of one's own
        sys.path.append(str(Path("src").resolve()))
    color = False if os.environ.get("NO_COLOR") else None  # None: colour on a terminal only
    try:
        return epochwatt.main(words, "epochwatt", standalone_mode=False, color=color) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("interrupted by Ctrl-C", err=True)
        return 130
    except MemoryError as error:
        message = f"{str(error) or 'out of memory'}\n  do: end other programs, or ask for less"
    except OSError as error:
        from epochwatt.board.records.files import ADVICE

        path = "" if error.filename is None else f"{error.filename}: "
        advice = ADVICE.get(error.errno or 0, "see `ulimit -a`")
        message = f"{path}{error.strerror or error}\n  do: {advice}"
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "epochwatt"):
            raise
        package = package.replace("torchvision", "torch")  # which it needs as well
        known = EpochwattError(
            f"this command needs {package}, which {sys.executable} does not have",
            do="pip install " + ("torch torchvision" if package == "torch" else package),
        )
        if not is_studied_here():
            known.do = f"{known.do}; then {how_to_get_a_folder()}"
        message = str(known)
    except EpochwattError as error:
        message = str(error)
        if not is_studied_here() and re.search(r"(?<![\w/])(config|results)[/:]", message):
            error.do = None  # it holds in a checkout alone
            message = str(
                EpochwattError(
                    f"{Path.cwd()} is not an epochwatt checkout: it has no folder config/",
                    found=str(error).replace("\n", "\n  "),
                    do=how_to_get_a_folder(),
                )
            )
    mark = click.style("error:", fg="red", bold=True)
    click.echo(f"{mark} {printable(message)}", err=True, color=color)
    return 1


if __name__ == "__main__":
    sys.exit(main())
