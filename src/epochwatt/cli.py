"""The command line: `epochwatt COMMAND`; `--help` lists them. The only module that prints."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from epochwatt import __version__
from epochwatt.errors import EpochwattError
from epochwatt.fields import TWIN


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
    _add_count(commands)
    _add_simulate(commands)
    _add_what_if(commands)
    _add_recommend(commands)
    _add_compare(commands)
    _add_calibrate(commands)
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


def _add_count(commands: Any) -> None:
    about = "what one training mini-batch asks of a GPU, for the simulation; needs none"
    command = commands.add_parser("count-workload", help=about)
    command.add_argument("model", metavar="MODEL", help="a row of config/workloads.yaml")
    command.add_argument("--output", required=True, metavar="PATH", help="a .json to be made")


def _add_simulate(commands: Any) -> None:
    run = commands.add_parser("simulate-run", help="a run on a simulated board, for the workflow")
    run.add_argument("run", metavar="RUN", help="id of the run")
    run.add_argument("--factors", required=True, help="its factors, as JSON")
    run.add_argument("--epochs", required=True, type=int, help="how many")
    run.add_argument("--workload", required=True, metavar="PATH", help="counts of its network")
    run.add_argument("--flag-effects", required=True, help="flag -> effect, as JSON")
    run.add_argument("--tables", required=True, metavar="FOLDER", help="for epochs.csv, energy.csv")
    idle = commands.add_parser("simulate-idle", help="idle powers of simulated boards, likewise")
    idle.add_argument("--idles", required=True, help="which, as JSON")
    for command in (run, idle):
        command.add_argument("--output", required=True, metavar="FOLDER", help="for the records")
        command.add_argument("--config", type=Path, default=Path("config/twin"), metavar="FOLDER")


def _add_what_if(commands: Any) -> None:
    about = "a question to a simulated board: time, energy, bottleneck (docs/twin.md)"
    command = commands.add_parser("what-if", help=about, description=about)
    command.add_argument(
        "--device", required=True, help="agx, nx, nano or orin, or a unit such as agx-d1"
    )
    command.add_argument("--model", help="a row of config/workloads.yaml")
    for option, metavar, kind, what in (
        ("storage", "MEDIUM", str, "ssd, hdd, sd or emmc"),
        ("workers", "N", int, "loader workers"),
        ("batch-size", "N", int, "samples of a mini-batch"),
        ("power-mode", "MODE", str, "of the device file, or CORES,CPU,GPU,MEMORY in MHz"),
        ("scale", "X", float, "size of the data set relative to the source"),
    ):
        command.add_argument(f"--{option}", metavar=metavar, type=kind, help=what)
    command.add_argument("--dvfs", choices=("on", "off"), help="on: governors choose the clocks")
    command.add_argument("--cold", action="store_true", help="the page cache is empty")
    totals = command.add_argument_group("instead of --model, a network told by all its totals")
    for option, what in (
        ("flops", "of training on one sample, a multiply-add is two"),
        ("bytes", "that kernels read and write in memory to train on one sample"),
        ("launches", "kernels of one mini-batch"),
        ("parameters", "trained weights"),
        ("sample-bytes", "of one sample as it is copied to the GPU"),
        ("file-bytes", "of one sample's file; 0: all samples are in memory"),
        ("pixels", "decoded and transformed for one sample"),
        ("samples", "of an epoch"),
    ):
        dest = "moved_bytes" if option == "bytes" else option.replace("-", "_")
        totals.add_argument(f"--{option}", dest=dest, type=float, metavar="N", help=what)


def _add_recommend(commands: Any) -> None:
    about = "the best power mode of a board within budgets, by fitted models (docs/prediction.md)"
    command = commands.add_parser("recommend", help=about, description=about)
    command.add_argument(
        "--backend",
        required=True,
        help=f"whose runs answer: jetson, fake (a fake board) or {TWIN} (simulated); a host "
        "has no power modes",
    )
    command.add_argument(
        "--device", required=True, help="DEVICE or DEVICE-INSTANCE, such as agx-d1"
    )
    command.add_argument("--model", required=True, help="a row of config/workloads.yaml")
    command.add_argument(
        "--objective",
        choices=("time", "energy", "edp"),
        help="what is least; edp: energy x time (time; energy where only --max-epoch-s is told)",
    )
    for option, dest, what in (
        ("power-w", "power_w", "mean power of an epoch"),
        ("epoch-s", "epoch_s", "time of an epoch"),
        ("energy-wh", "energy_wh", "energy of an epoch"),
    ):
        help_ = f"highest expected {what}"
        command.add_argument(f"--max-{option}", dest=dest, type=float, metavar="X", help=help_)
    for option, metavar, kind in (("storage", "MEDIUM", str), ("workers", "N", int)):
        command.add_argument(f"--{option}", metavar=metavar, type=kind, help="of the runs")
    command.add_argument("--batch-size", metavar="N", type=int, help="of the runs")
    command.add_argument(
        "--verify", action="store_true", help="the one run that would confirm it, or what it gave"
    )


def _add_compare(commands: Any) -> None:
    about = "two sets of runs: ratios of time and energy, equivalent or not (docs/compare.md)"
    command = commands.add_parser("compare", help=about, description=about)
    for name in ("A", "B"):
        help_ = "id of a run, a pattern of ids in quotes, or a folder of results"
        command.add_argument(name.lower(), metavar=name, help=help_)
    command.add_argument(
        "--margin", type=float, default=5.0, metavar="PCT", help="no difference up to (%(default)s)"
    )
    command.add_argument(
        "--csv", type=Path, metavar="PATH", help="a table of all ratios to be made"
    )


def _add_calibrate(commands: Any) -> None:
    about = "fit the simulated boards to the main paper's numbers: config/twin/ (make validate)"
    command = commands.add_parser("calibrate-twin", help=about)
    command.add_argument("--folds", action="store_true", help="and refit all that is left out")
    command.add_argument("--priors", action="store_true", help="and see what other priors give")
    command.add_argument(
        "--workloads",
        type=Path,
        default=Path("results/twin/workloads"),
        metavar="FOLDER",
        help="counts of the networks (%(default)s)",
    )


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
            f"there is no {path} yet\n"
            "  the workflow makes it (`make run`; on a board: snakemake --profile jetson)"
        )
    print(path.read_text("utf-8"))
    print("figures  results/figures/     tables  results/tables/")
    if Path("results/report.html").exists():
        print("report   results/report.html  (opens in any browser, offline)")


def _report(_: argparse.Namespace) -> None:
    from epochwatt.maintenance.report import make_report

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


def _count_workload(arguments: argparse.Namespace) -> None:
    from epochwatt.study.settings import load_settings
    from epochwatt.twin.counting.count_workload import (  # imports torch
        network_factors,
        write_workload,
    )

    factors = network_factors(arguments.model, load_settings().workloads)
    write_workload(factors, arguments.output)


def _simulate_run(arguments: argparse.Namespace) -> None:
    from epochwatt.twin.simulation.simulate_run import simulate_run

    simulate_run(
        arguments.run,
        arguments.factors,
        arguments.epochs,
        arguments.config,
        arguments.workload,
        arguments.flag_effects,
        arguments.output,
        arguments.tables,
    )


def _simulate_idle(arguments: argparse.Namespace) -> None:
    from epochwatt.twin.simulation.simulate_run import simulate_idle

    simulate_idle(arguments.idles, arguments.config, arguments.output)


def _what_if(arguments: argparse.Namespace) -> None:
    from epochwatt.twin.what_if.question import TOTALS, Asked, what_if_lines

    told = {key: value for key, value in vars(arguments).items() if key != "command"}
    totals = {name: told.pop(name) for name in TOTALS}
    print("\n".join(what_if_lines(Asked(totals=totals, **told))))


def _recommend(arguments: argparse.Namespace) -> None:
    from epochwatt.prediction.recommend.command import Asked, advise
    from epochwatt.prediction.recommend.text import (
        advice_lines,
        block_lines,
        file_lines,
        write_block,
    )
    from epochwatt.prediction.recommend.verify import verify_lines

    told = {key: value for key, value in vars(arguments).items() if key != "command"}
    budgets = {name: told.pop(name) for name in ("power_w", "epoch_s", "energy_wh")}
    verify = told.pop("verify")
    given = {name: most for name, most in budgets.items() if most is not None}
    advice = advise(Asked(budgets=given, **told))
    print("\n".join(advice_lines(advice)), flush=True)
    if advice.told.front:
        from epochwatt.figures.front import draw_front  # imports matplotlib

        front = draw_front(advice)
    else:
        front = []
    print("\n".join(file_lines(advice, front, write_block(advice))))
    if verify:
        print("\n".join(verify_lines(advice)))
    print("\n".join(block_lines(advice)))


def _compare(arguments: argparse.Namespace) -> None:
    from epochwatt.analysis.compare import compare_lines

    lines = compare_lines(arguments.a, arguments.b, arguments.margin, arguments.csv)
    print("\n".join(lines))


def _calibrate_twin(arguments: argparse.Namespace) -> None:
    from epochwatt.claims.removed import write_removed
    from epochwatt.twin.calibration.fit_numbers import write_seen
    from epochwatt.twin.validation.validate_twin import recalibrate, refresh_leaks, study_priors

    write_seen()
    refresh_leaks(arguments.workloads)
    if arguments.folds:
        write_removed()

    def say(line: str) -> None:
        print(line, flush=True)

    recalibrate(arguments.workloads, arguments.folds, say)
    if arguments.priors:
        study_priors(arguments.workloads, say)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status, 1 after an error that was explained."""
    arguments = _parser().parse_args(argv)
    commands: dict[str, Callable[[argparse.Namespace], int | None]] = {
        **{"plan": _plan, "discard": _discard, "summary": _summary, "report": _report},
        **{"doctor": _doctor, "bundle": _bundle, "import-2023": _import_2023},
        **{"count-workload": _count_workload, "simulate-run": _simulate_run},
        **{"simulate-idle": _simulate_idle, "what-if": _what_if},
        **{"recommend": _recommend, "compare": _compare, "calibrate-twin": _calibrate_twin},
    }
    try:
        status = commands[arguments.command](arguments) or 0
        sys.stdout.flush()  # a closed pipe is found out here, not when Python ends
    except BrokenPipeError:  # who reads, `| head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("ended by Ctrl-C", file=sys.stderr)
        return 130
    except (OSError, MemoryError) as error:  # a limit on files, memory or descriptors
        print(f"error: {str(error) or 'out of memory'}\n  see `ulimit -a`", file=sys.stderr)
        return 1
    except EpochwattError as error:
        print(f"error: {error}", file=sys.stderr)
        if not Path("config").is_dir():
            print(f"  {Path.cwd()} is no checkout: run it in the folder of one", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
