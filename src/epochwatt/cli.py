"""The command line: `epochwatt COMMAND`; `--help` lists them. The only module that prints."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from epochwatt import __version__
from epochwatt.errors import EpochwattError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="epochwatt", description="Run it in the checkout.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    plan = commands.add_parser("plan", help="the run table, epochs measured, estimate of the time")
    plan.add_argument(
        "studies", metavar="STUDY", nargs="*", help="instead of those that config.yaml selects"
    )
    plan.add_argument("--why", metavar="RUN", help="what would run for one run, because of what")
    discard = commands.add_parser("discard", help="move measured epochs to measured/.trash")
    discard.add_argument("run", metavar="RUN", help="id of the run")
    discard.add_argument("epoch", metavar="EPOCH", type=int, nargs="?", help="all when left out")
    commands.add_parser("summary", help="what was trained and where the time went")
    commands.add_parser("report", help="make results/report.html when something it shows is newer")
    _add_doctor_and_bundle(commands)
    _add_import(commands)
    return parser


def _add_doctor_and_bundle(commands: Any) -> None:
    about = "a self-test: what works, at what cost, what to do about the rest (docs/doctor.md)"
    doctor = commands.add_parser("doctor", help=about)
    doctor.add_argument("--seconds", type=float, default=10.0, help="of samples (10)")
    bundle = commands.add_parser("bundle", help="one file for a bug report about a board")
    bundle.add_argument("file", metavar="FILE", type=Path, nargs="?", help="a .tar.gz to be made")
    bundle.add_argument("--keep-names", action="store_true", help="serial number, host and user")
    for command in (doctor, bundle):
        command.add_argument("--device", metavar="NAME", help="the board at hand, else host")


def _add_import(commands: Any) -> None:
    about = "make runs of the logs that the papers' scripts left in a folder (docs/import-2023.md)"
    command = commands.add_parser("import-2023", help=about)
    command.add_argument("folder", metavar="FOLDER", type=Path)
    for option in ("device", "instance", "model", "storage", "power-mode"):
        command.add_argument(f"--{option}", required=True, help="as config/ names it")
    command.add_argument("--batch-size", required=True, type=int)
    command.add_argument("--dvfs", required=True, choices=("on", "off"))
    command.add_argument("--setup", default="sigmetrics2023", help="left out: %(default)s")


def _plan(arguments: argparse.Namespace) -> None:
    from epochwatt.study.plan import plan_lines, why_lines
    from epochwatt.study.settings import load_settings

    settings = load_settings({"studies": arguments.studies} if arguments.studies else None)
    lines = (
        why_lines(settings, arguments.why, arguments.studies)
        if arguments.why
        else plan_lines(settings)
    )
    print("\n".join(lines))


def _discard(arguments: argparse.Namespace) -> None:
    from epochwatt.device.locks import machine_lock
    from epochwatt.study.discard import discard

    holder = {"discarding": arguments.run}
    with machine_lock().acquire(holder, on_wait=lambda who: print(f"waiting: {who} is measuring")):
        for path in discard("measured", arguments.run, arguments.epoch):
            print(f"moved to {path}")
    if arguments.epoch:  # epoch 0 starts from fresh weights anyway
        print(
            f"epoch {arguments.epoch} will be measured again, but from fresh weights, so it is "
            "flagged and left out of means; to repeat the whole run: "
            f"epochwatt discard {arguments.run}"
        )


def _summary(_: argparse.Namespace) -> None:
    path = Path("results/summary.txt")
    if not path.exists():
        raise EpochwattError(
            "there is no results/summary.txt yet: the workflow makes it (`make run`; on a "
            "board: snakemake --profile jetson)"
        )
    print(path.read_text("utf-8"))
    print("figures  results/figures/     tables  results/tables/")
    if Path("results/report.html").exists():
        print("report   results/report.html  (opens in any browser, offline)")


def _report(_: argparse.Namespace) -> None:
    from epochwatt.study.report import make_report

    print(make_report())


def _import_2023(arguments: argparse.Namespace) -> None:
    from epochwatt.study.import_2023 import Told, import_folder

    told = {k: v for k, v in vars(arguments).items() if k not in ("command", "folder")}
    print("\n".join(import_folder(arguments.folder, Told(**told))))


def _doctor(arguments: argparse.Namespace) -> int:
    from epochwatt.doctor.examine import doctor_lines

    lines, status = doctor_lines(arguments.device, arguments.seconds)
    print("\n".join(lines))
    return status


def _bundle(arguments: argparse.Namespace) -> None:
    from epochwatt.doctor.bundle import make_bundle

    lines = make_bundle(arguments.file, arguments.device, arguments.keep_names)
    print("\n".join(lines))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status, 1 after an error that was explained."""
    arguments = _parser().parse_args(argv)
    commands: dict[str, Callable[[argparse.Namespace], int | None]] = {
        **{"plan": _plan, "discard": _discard, "summary": _summary, "report": _report},
        **{"doctor": _doctor, "bundle": _bundle, "import-2023": _import_2023},
    }
    try:
        return commands[arguments.command](arguments) or 0
    except EpochwattError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
