"""The command line: `epochwatt COMMAND`; `--help` lists them. Only command lines print."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from epochwatt import __version__
from epochwatt.cli import (
    interleave,
    look,
    maintain,
    measure,
    predict,
    profile,
    roofline,
    schedule,
    share,
    sweeps,
)
from epochwatt.cli.command import Group
from epochwatt.errors import EpochwattError
from epochwatt.text import printable

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Measure": (
        measure.plan,
        measure.doctor,
        measure.fleet_check,
        measure.discard,
        interleave.serve_and_train,
    ),
    "Look at results": (look.summary, look.report, look.compare, roofline.explain),
    "Simulate and predict": (
        predict.what_if,
        predict.recommend,
        profile.profile,
        schedule.schedule,
        predict.score,
        roofline.count,
    ),
    "Sweeps of modes": (sweeps.sweeps, sweeps.convert_sweep),
    "Share data": (share.export, share.validate),
    "Maintain": (
        maintain.bug_report,
        maintain.calibrate_twin,
        maintain.completion,
    ),
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

    Run it in your checkout, the folder that contains config/. `make run` does the whole work there;
    these commands show what it will do, what came out, and answer questions.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 1 after a known error, 2 after a wrong usage."""
    words = None if arguments is None else list(arguments)
    color = False if os.environ.get("NO_COLOR") else None  # None: colour on a terminal only
    try:
        status = epochwatt.main(words, "epochwatt", standalone_mode=False, color=color)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("interrupted by Ctrl-C", err=True)
        return 130
    except (OSError, MemoryError) as error:
        _show(_of_the_system(error), color)
        return 1
    except EpochwattError as error:
        _show(str(error if Path("config").is_dir() else _not_a_checkout(error)), color)
        return 1
    return status or 0


def _of_the_system(error: OSError | MemoryError) -> str:
    """Return what the system refused, of which file, and what to do."""
    from epochwatt.board.records.files import ADVICE

    if isinstance(error, MemoryError):
        return f"{str(error) or 'out of memory'}\n  do: end other programs, or ask for less"
    path = "" if error.filename is None else f"{error.filename}: "
    advice = ADVICE.get(error.errno or 0, "see `ulimit -a`")
    return f"{path}{error.strerror or error}\n  do: {advice}"


def _not_a_checkout(error: EpochwattError) -> EpochwattError:
    """Say that this is no checkout, where a file of one is missing."""
    if not re.search(r"\b(config|results|measured)[/:]", str(error)):
        return error
    return EpochwattError(
        f"{Path.cwd()} is not an epochwatt checkout: it has no folder config/",
        found=str(error).replace("\n", "\n  "),
        do="change to your checkout and run the command there",
    )


def _show(message: str, color: bool | None) -> None:
    mark = click.style("error:", fg="red", bold=True)
    click.echo(f"{mark} {printable(message)}", err=True, color=color)


if __name__ == "__main__":
    sys.exit(main())
