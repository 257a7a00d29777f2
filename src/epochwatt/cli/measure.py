"""Commands around a measurement: `plan`, `doctor`, `fleet-check`, `discard`."""

from pathlib import Path

import click

from epochwatt.cli.command import (
    DEVICE,
    NOT_NEGATIVE,
    POSITIVE,
    RUN,
    STUDY,
    Command,
    Integer,
    say,
)


@click.command(
    cls=Command,
    short_help="List what is selected and how long it will take.",
    examples=[
        ("epochwatt plan", "the studies selected in config/config.yaml"),
        ("epochwatt plan host-pipeline", "one study"),
        ("epochwatt plan paper", "every study of the two papers"),
        ("epochwatt plan --runs", "with a line for each run"),
        ("epochwatt plan orin-50", "a sweep of modes"),
        ("epochwatt plan --explain RUN", "the jobs that would run for one run, and why"),
    ],
)
@click.argument("studies", metavar="[STUDY]...", nargs=-1, shell_complete=STUDY)
@click.option(
    "--explain",
    metavar="RUN",
    shell_complete=RUN,
    help="Show which jobs would run for this run, and why.",
)
@click.option("--why", metavar="RUN", hidden=True, help="Former name of --explain.")
@click.option("--runs", "with_runs", is_flag=True, help="List each run, too.")
def plan(studies: tuple[str, ...], explain: str | None, why: str | None, with_runs: bool) -> None:
    """List the selected studies, how many of their epochs are measured, and how long the rest will
    take. Nothing is run.

    STUDY is a name in config/studies.yaml, or a group of studies such as `paper` or `simulated`, or
    a sweep of config/sweeps.yaml. Without one, what config/config.yaml selects is listed.
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
    if run := explain or why:
        say(why_lines(settings, run, others))
        return
    lines = plan_lines(settings, with_runs) if others or not sweeps else []
    say([*lines, *sweep_lines(load_sweeps(config), settings)])


@click.command(
    cls=Command,
    short_help="Check what works on this machine and how to fix the rest.",
    examples=[
        ("epochwatt doctor", "the board at hand, or the host"),
        ("epochwatt doctor --device orin --seconds 30", "a device by name, sampled for longer"),
    ],
)
@click.option(
    "--seconds",
    type=POSITIVE,
    default=10.0,
    show_default=True,
    help="How long to sample the sensors, in seconds.",
)
@click.option(
    "--device",
    metavar="NAME",
    shell_complete=DEVICE,
    help="A file of config/devices/. Default: the board at hand, or else host.",
)
@click.pass_context
def doctor(context: click.Context, seconds: float, device: str | None) -> None:
    """Check board, clocks, sensors, storage and Python, and say how to fix what does not work. It
    takes less than a minute and changes no setting (docs/how-to/check-a-board.md).

    The exit status is 1 if there is a problem.
    """
    from epochwatt.doctor.examine import doctor_lines

    lines, status = doctor_lines(device, seconds)
    say(lines)
    context.exit(status)


@click.command(
    "fleet-check",
    cls=Command,
    short_help="Check every board of a fleet and how to fix the rest.",
    examples=[
        ("epochwatt fleet-check", "all nodes of the Slurm that is used here, and ssh boards")
    ],
)
@click.pass_context
def fleet_check(context: click.Context) -> None:
    """Check every board that a device file names, through Slurm (`constraint`) or over ssh
    (`remote: true`): features, shared files, clocks, software, power modes, space, limits of the
    partition. A board that is at work is left alone, and no setting is changed
    (docs/how-to/fleet.md).

    The exit status is 1 if there is a problem.
    """
    from epochwatt.doctor.fleet import fleet_lines

    lines, status = fleet_lines()
    say(lines)
    context.exit(status)


@click.command(
    cls=Command,
    short_help="Move measured epochs or modes to the trash.",
    examples=[
        ("epochwatt discard RUN", "all epochs of a run; `epochwatt plan --runs` lists them"),
        ("epochwatt discard RUN 3", "epoch 3 only"),
        ("epochwatt discard SWEEP", "all modes of a sweep of config/sweeps.yaml"),
        ("epochwatt discard SWEEP/MODE", "one mode: a folder in measured/ below the sweep's id"),
        ("epochwatt discard --shared", "all that was measured while others used this machine"),
    ],
)
@click.argument("run", metavar="[RUN]", required=False, shell_complete=RUN)
@click.argument("epoch", metavar="[EPOCH]", required=False, type=Integer(min=0))
@click.option(
    "--shared",
    is_flag=True,
    help="Runs and ceilings that other programs disturbed, in place of RUN.",
)
@click.option(
    "--within-s",
    metavar="S",
    type=NOT_NEGATIVE,
    help="With --shared: only if the machine is quiet now, and what takes no more than S seconds "
    "to measure again, as `make run` does.",
)
def discard(run: str | None, epoch: int | None, shared: bool, within_s: float | None) -> None:
    """Move the measured epochs of RUN to measured/.trash, so that they are measured again. It waits
    while something is being measured on this machine.

    EPOCH is the number of one epoch, counted from 0. Without it, all epochs are moved. In place of
    a run, a sweep or one of its modes is named.
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
