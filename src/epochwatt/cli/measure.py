"""Commands around a measurement: `plan`, `doctor`, `run`, `discard` and others."""

from pathlib import Path
from typing import Any

import click

from epochwatt.cli.command import (
    BOARD_AT_HAND,
    COUNT,
    COUNT_OR_0,
    MODEL,
    NOT_NEGATIVE,
    OUTPUT_FILE,
    PATH,
    POSITIVE,
    RUN,
    STUDY,
    command,
    option,
    say,
    without_none,
)


@command("List what is selected and how long it will take.")
@click.argument("studies", metavar="[STUDY]...", nargs=-1, type=STUDY)
@option("--explain RUN", "Show which jobs would run for this run, and why.", RUN)
@option("--why RUN", "Former name of --explain.", into="explain", hidden=True)
@option("--runs", "List each run, too.", into="with_runs")
def plan(studies: tuple[str, ...], explain: str | None, with_runs: bool) -> None:
    """List the selected studies, how many of their epochs are measured, and how long the rest will
    take. Nothing is run.

    STUDY is a name in config/studies.yaml, or a group of studies such as `paper` or `simulated`, or
    a sweep of config/sweeps.yaml. Without one, what config/config.yaml selects is listed.

    Examples:
    # the studies selected in config/config.yaml
    epochwatt plan
    # one study
    epochwatt plan host-pipeline
    # every study of the two papers
    epochwatt plan paper
    # with a line for each run
    epochwatt plan --runs
    # a sweep of modes
    epochwatt plan orin-50
    # the jobs that would run for one run, and why
    epochwatt plan --explain RUN
    """
    from epochwatt.study.plan import plan_lines, why_lines
    from epochwatt.study.settings import CONFIG, load_settings
    from epochwatt.study.yaml_files import read_yaml
    from epochwatt.sweeps.plan import sweep_lines
    from epochwatt.sweeps.table import load_sweeps, sweep_names

    all_sweeps = sweep_names()
    sweeps = [name for name in studies if name in all_sweeps]
    others = [name for name in studies if name not in all_sweeps]
    config = {"studies": others, "sweeps": sweeps} if studies else read_yaml(Path(CONFIG))
    settings = load_settings(config)
    if explain:
        say(why_lines(settings, explain, others))
        return
    lines = plan_lines(settings, with_runs) if others or not sweeps else []
    say([*lines, *sweep_lines(load_sweeps(config), settings)])


@command("Check what works on this machine and how to fix the rest.")
@option("--seconds NUMBER", "How long to sample the sensors, in seconds.", POSITIVE, default=10.0)
@BOARD_AT_HAND
def doctor(seconds: float, device: str | None) -> int:
    """Check board, clocks, sensors, storage and Python, and say how to fix what does not work. It
    takes less than a minute and changes no setting (docs/how-to/check-a-board.md).

    The exit status is 1 if there is a problem.

    Examples:
    # the board at hand, or the host
    epochwatt doctor
    # a device by name, sampled for longer
    epochwatt doctor --device orin --seconds 30
    """
    from epochwatt.doctor.examine import doctor_lines

    lines, status = doctor_lines(device, seconds)
    say(lines)
    return status


@command("Check every board of a fleet and how to fix the rest.", "fleet-check")
def fleet_check() -> int:
    """Check every board that a device file names, through Slurm (`constraint`) or over ssh
    (`remote: true`): features, shared files, clocks, software, power modes, space, limits of the
    partition. A board that is at work is left alone, and no setting is changed
    (docs/how-to/fleet.md).

    The exit status is 1 if there is a problem.

    Examples:
    # all nodes of the Slurm that is used here, and ssh boards
    epochwatt fleet-check
    """
    from epochwatt.doctor.fleet import fleet_lines

    lines, status = fleet_lines()
    say(lines)
    return status


@command("Measure time and energy of any command.")
@click.argument("words", metavar="COMMAND", nargs=-1, required=True, type=click.UNPROCESSED)
@option("--json FILE", "Also write time, energy, bound and flags into a file.", OUTPUT_FILE)
def run(words: tuple[str, ...], json: Path | None) -> int:
    """Run COMMAND and say what it took: its time, and the energy that this machine's sensors see,
    with the bound of its error. The exit status is that of the command.

    For the epochs of a training script there is `epochwatt.EpochMonitor`.

    Examples:
    # everything behind the two dashes is the command
    epochwatt run -- python train.py --epochs 3
    """
    from epochwatt.integrations.command import run_command

    return run_command(words, "" if json is None else str(json))


@command("Make epochs with energy of another program's power log.", "import")
@click.argument("log", metavar="LOG", type=PATH)
@option("--epochs FILE", "Start and end of each epoch, CSV or JSON lines.", PATH, required=True)
@option("--name NAME", "Name of the run. Default: the log's.")
@option("--board KIND", "Board whose rails were read, where their names do not show it.")
@option(
    "--gpu N",
    "GPU that trained, in a log of several; once for each.",
    COUNT_OR_0,
    into="gpus",
    multiple=True,
)
@option("--start TIME", "When the log began, if its times count from there.")
@option("--timezone ZONE", "Zone of times without one. Default: this machine's.")
@option(
    "--averaging S",
    "Each reading is the mean of the S seconds before it.",
    POSITIVE,
    into="averaging_s",
)
@option("--meter COLUMN", "Column of a CSV with the power that a meter at the plug has read.")
@option("--cpu", "Take the CPU's energy from CodeCarbon, if it was read from RAPL.")
def import_log(log: Path, epochs: Path, **options: Any) -> None:
    """Turn a power log into epochs with energy, bound and flags. LOG was written during a training
    by tegrastats, nvidia-smi, CodeCarbon, MLPerf's power meter, a logger of a board's rails or a
    meter at the plug. FILE has the columns epoch, start and end, as Unix seconds or ISO times, or
    the MLLOG lines of an MLPerf training (docs/how-to/import-a-power-log.md).

    Examples:
    # a log of tegrastats
    epochwatt import tegrastats.txt --epochs epochs.csv
    # a meter at the plug: a CSV with the columns time and power_w
    epochwatt import plug.csv --epochs epochs.csv --meter power_w
    # rails with names of the logger's own; its times count from the start of the log
    epochwatt import power.csv --epochs epochs.csv --board agx_orin --start 2026-07-31T14:58:05Z
    # two GPUs of four
    epochwatt import nvidia_smi.csv --epochs epochs.jsonl --gpu 0 --gpu 1
    """
    from epochwatt.power_logs import Options, import_power_log

    say(import_power_log(log, epochs, Options(**without_none(options))))


@command("Move measured epochs or modes to the trash.")
@click.argument("run", metavar="[RUN]", required=False, type=RUN)
@click.argument("epoch", metavar="[EPOCH]", required=False, type=COUNT_OR_0)
@option("--shared", "Runs and ceilings that other programs disturbed, in place of RUN.")
@option(
    "--within-s S",
    "With --shared: only if the machine is quiet now, and what takes no more than S seconds to "
    "measure again, as `make run` does.",
    NOT_NEGATIVE,
)
def discard(run: str | None, epoch: int | None, shared: bool, within_s: float | None) -> None:
    """Move the measured epochs of RUN to measured/.trash, so that they are measured again. It waits
    while something is being measured on this machine.

    EPOCH is the number of one epoch, counted from 0. Without it, all epochs are moved. In place of
    a run, a sweep or one of its modes is named.

    Examples:
    # all epochs of a run; `epochwatt plan --runs` lists them
    epochwatt discard RUN
    # epoch 3 only
    epochwatt discard RUN 3
    # all modes of a sweep of config/sweeps.yaml
    epochwatt discard SWEEP
    # one mode: a folder in measured/ below the sweep's id
    epochwatt discard SWEEP/MODE
    # all that was measured while others used this machine
    epochwatt discard --shared
    """
    if shared == bool(run):
        raise click.UsageError("name a RUN, or give --shared")
    from epochwatt.board.device.locks import machine_lock
    from epochwatt.study.discard import discard
    from epochwatt.sweeps.discard import discard_modes

    def report_wait(holder: str) -> None:
        click.echo(f"waiting: {holder} is measuring")

    if not run:
        from epochwatt.maintenance.shared import discard_shared

        for line in discard_shared(within_s, report_wait):
            click.echo(line)
        return
    with machine_lock().acquire({"discarding": run}, on_wait=report_wait):
        modes = discard_modes("measured", run) if epoch is None else []
        for path in modes or discard("measured", run, epoch):
            click.echo(f"moved to {path}")
    if epoch:  # epoch 0 starts from fresh weights anyway
        click.echo(
            f"epoch {epoch} will be measured again from fresh weights, so it will be flagged and "
            f"left out of means; to repeat the whole run: epochwatt discard {run}"
        )


@command("Train in the gaps of a stream of requests; measure both.", "serve-and-train")
@option("--train NAME", "Network that trains.", MODEL, required=True)
@option("--infer NAME", "Network that answers.", MODEL, required=True)
@option(
    "--rate R",
    "Requests a second. Default, with a file: as in the file.",
    POSITIVE,
    into="rate_per_s",
)
@option("--batch B", "Requests that are served together.", COUNT, into="batch_size", required=True)
@option(
    "--n-train N",
    "Most mini-batches of training between two of requests. Default: as many as fit.",
    COUNT_OR_0,
)
@option("--seconds S", "How long requests arrive.", POSITIVE, required=True)
@option(
    "--arrivals PROCESS",
    "constant, poisson, or a file with one time a line, in seconds.",
    default="constant",
)
@option("--queue N", "Most requests that wait; more are refused. Default: ten mini-batches.", COUNT)
@BOARD_AT_HAND
def serve_and_train(device: str | None, **plan: Any) -> int:
    """Train one network in the gaps that a stream of requests to another leaves, both in one
    process (docs/how-to/serve-and-train.md).

    A mini-batch of requests is served as soon as it is complete. Mini-batches of training follow
    while they end before the next one is expected. Samples are made up and in memory; the machine's
    power mode stays as it is. Ctrl-C ends it and keeps what was measured.

    Examples:
    # as much training as fits
    epochwatt serve-and-train --train lenet --infer mobilenet --rate 10 --batch 4 --seconds 60
    # at most two mini-batches of training between two of requests
    epochwatt serve-and-train --train resnet --infer lenet --rate 50 --batch 16 --n-train 2
        --seconds 60 --arrivals poisson
    """
    from epochwatt.schedule.interleaved import measure, outcome_lines, plan_for

    record, status = measure(plan_for(plan), device)
    if record is not None:
        say(outcome_lines(record))
    return status
