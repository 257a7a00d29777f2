"""The command line: `epochwatt plan | discard | summary | report`. The only module that prints."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from epochwatt import __version__
from epochwatt.errors import EpochwattError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="epochwatt", description="Run it in the checkout.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    plan = commands.add_parser("plan", help="the run table, epochs measured, estimate of the time")
    plan.add_argument("--why", metavar="RUN", help="what would run for one run, because of what")
    discard = commands.add_parser("discard", help="move measured epochs to measured/.trash")
    discard.add_argument("run", metavar="RUN", help="id of the run")
    discard.add_argument("epoch", metavar="EPOCH", type=int, nargs="?", help="all when left out")
    commands.add_parser("summary", help="what was trained and where the time went")
    commands.add_parser("report", help="make results/report.html when something it shows is newer")
    return parser


def _plan(arguments: argparse.Namespace) -> None:
    from epochwatt.study.plan import plan_lines, why_lines
    from epochwatt.study.settings import load_settings

    settings = load_settings()
    lines = why_lines(settings, arguments.why) if arguments.why else plan_lines(settings)
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
        raise EpochwattError("there is no results/summary.txt yet: `make run` makes it")
    print(path.read_text("utf-8"))
    print("figures  results/figures/     tables  results/tables/")
    if Path("results/report.html").exists():
        print("report   results/report.html  (opens in any browser, offline)")


def _report(_: argparse.Namespace) -> None:
    from epochwatt.study.report import make_report

    print(make_report())


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status, 1 after an error that was explained."""
    arguments = _parser().parse_args(argv)
    commands = {"plan": _plan, "discard": _discard, "summary": _summary, "report": _report}
    try:
        commands[arguments.command](arguments)
    except EpochwattError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
