"""Declare commands and options of click as their help shows them; complete names of a checkout."""

import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from epochwatt.text import printable

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class HelpFormatter(click.HelpFormatter):
    """Headings bold, commands and options cyan; click removes colour where there is no terminal."""

    def write_heading(self, heading: str) -> None:
        """Write the heading of a section."""
        super().write_heading(click.style(heading, bold=True))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write terms and their descriptions."""
        coloured = [(click.style(term, fg="cyan"), text) for term, text in rows]
        super().write_dl(coloured, col_max, col_spacing)


class Context(click.Context):
    """A context whose help has our look."""

    formatter_class = HelpFormatter


class Command(click.Command):
    """A command whose docstring ends with examples: lines of comment, and of what to type."""

    context_class = Context

    def __init__(self, name: str | None, help: str = "", **settings: Any) -> None:  # noqa: A002
        text, _, examples = inspect.cleandoc(help).partition("\n\nExamples:\n")
        super().__init__(name, help=text, **settings)
        self.examples = examples.replace("\n    ", " ").splitlines()  # indented: of the line above

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line, which stay in `meta["typed"]`."""
        ctx.meta["typed"] = list(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples below the options."""
        with formatter.section("Examples"):
            for line in self.examples:
                shown = click.style(line, dim=True) if line.startswith("#") else line
                formatter.write(f"{'':>{formatter.current_indent}}{shown}\n")


class Group(click.Group):
    """A group whose commands are listed under headings and may have had another name."""

    context_class = Context

    def __init__(
        self,
        name: str | None,
        sections: Mapping[str, Sequence[click.Command]],
        old_names: Mapping[str, str],
        **settings: Any,
    ) -> None:
        commands = [command for section in sections.values() for command in section]
        super().__init__(name, commands, **settings)
        self.sections, self.old_names = sections, old_names

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name or a former one."""
        return super().get_command(ctx, self.old_names.get(cmd_name, cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, with their summaries in one column."""
        width, limit = max(map(len, self.commands)), formatter.width
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{c.name:{width}}", c.get_short_help_str(limit)) for c in commands]
                )


def command(
    short_help: str, name: str | None = None
) -> Callable[[Callable[..., int | None]], Command]:
    """Return a decorator that declares a command; its function returns the exit status or None."""
    return click.command(name, cls=Command, short_help=short_help)


def option(
    usage: str,
    text: str,
    kind: click.ParamType | None = None,
    *,
    into: str | None = None,
    **settings: Any,
) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds an option to a command.

    `usage`: as its help shows it, `--rate N`; without `N` and a `kind` it is a flag
    `into`: name of the function's parameter, where it is another one
    `settings`: as of `click.option`
    """
    name, _, metavar = usage.partition(" ")
    return click.option(
        *([name, into] if into else [name]),
        type=kind,
        metavar=metavar or None,
        help=text,
        is_flag=True if not metavar and kind is None else None,
        show_default="default" in settings,
        **settings,
    )


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were set on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def say(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines, control characters escaped, as others' files may hold them."""
    click.echo(printable("\n".join(lines)), err=err)


class Integer(click.IntRange):
    """An integer within a range, called so in messages."""

    name = "integer"


class Finite(click.FloatRange):
    """A finite number; with `whole` an integer, which may be written as 2e6."""

    name = "number"
    MOST_WHOLE = 1e12  # more is a slip; up to here float holds every integer

    def __init__(self, *args: Any, whole: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.whole = whole

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert to a finite number, with `whole` to a whole one; else a usage error."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        if self.whole and not (number.is_integer() and number <= self.MOST_WHOLE):
            most = f"{self.MOST_WHOLE:.0e}"
            self.fail(f"{value} is not a whole number of at most {most}.", param, ctx)
        return number


class OutputFile(click.Path):
    """A new file: one that is there, or cannot be written, is refused before the work."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; usage error: it exists, or its folder is missing or read-only."""
        path = Path(str(super().convert(value, param, ctx)))
        if path.is_dir():
            self.fail(f"{path} is a folder; name a file in it.", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"the folder {path.parent} does not exist; make it first.", param, ctx)
        if path.exists():
            self.fail(f"{path} exists already; remove it, or choose another name.", param, ctx)
        if not os.access(path.parent, os.W_OK):
            self.fail(f"{path} may not be written by this user.", param, ctx)
        return path


class Name(click.ParamType):
    """A name of something in the checkout, which the shell completes; any text is accepted."""

    name = "text"

    def __init__(self, list_names: Callable[[], Iterable[str]]) -> None:
        self.list_names = list_names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin with what is typed."""
        return [CompletionItem(name) for name in self.list_names() if name.startswith(incomplete)]


def files_named(pattern: str) -> Name:
    """Return the type of names of files (without suffix) and folders that match a pattern."""
    return Name(lambda: sorted(p.stem if p.is_file() else p.name for p in Path().glob(pattern)))


def keys_of(*paths: str) -> Name:
    """Return the type of names that are top-level keys of YAML files.

    The keys are found by a pattern, as parsing is too slow for Tab.
    """

    def keys() -> list[str]:
        text = "\n".join(Path(path).read_text("utf-8") for path in paths if Path(path).is_file())
        return re.findall(r"^([\w.-]+):", text, re.M)

    return Name(keys)


def _sweeps() -> list[str]:
    from epochwatt.sweeps.find import names

    return names()


RUN, RESULT = files_named("measured/[!.]*"), files_named("results/runs/*")
STUDY = keys_of("config/studies.yaml", "config/sweeps.yaml")
MODEL, DEVICE = keys_of("config/workloads.yaml"), files_named("config/devices/*.yaml")
SWEEP, OWN_SWEEP = Name(_sweeps), files_named("results/sweeps/*")
PATH, OUTPUT_FILE = click.Path(path_type=Path), OutputFile(path_type=Path)
POSITIVE, NOT_NEGATIVE = Finite(min=0, min_open=True), Finite(min=0)
COUNT, COUNT_OR_0 = Integer(min=1), Integer(min=0)
BOARD_AT_HAND = option(
    "--device NAME",
    "A file of config/devices/. Default: the board at hand, or else host.",
    DEVICE,
)
