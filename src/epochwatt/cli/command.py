"""Click commands with examples, sections and colour, and completion of names in the checkout."""

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from epochwatt.text import printable

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


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
    """A command with examples."""

    context_class = Context

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples below the options."""
        with formatter.section("Examples"):
            for line, text in self.examples:
                comment = click.style(f"# {text}", dim=True)
                formatter.write(f"{'':>{formatter.current_indent}}{comment}\n")
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def say(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines, with nothing in them that a terminal would obey: files of others have names."""
    click.echo(printable("\n".join(lines)), err=err)


class Integer(click.IntRange):
    """An integer within a range, called so in messages."""

    name = "integer"


class Finite(click.FloatRange):
    """A number that is neither infinite nor "nan"."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or raise a usage error with what is allowed."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class OutputFile(click.Path):
    """A new file: one that is there, or cannot be written, is refused before the work."""

    name = "file"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path, or raise a usage error that says what is in the way."""
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


class Whole(Finite):
    """A whole number, also as 2e6, of at most `MOST`."""

    MOST = 1e12

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or raise a usage error with what is allowed."""
        number = super().convert(value, param, ctx)
        if not number.is_integer() or number > self.MOST:
            self.fail(f"{value} is not a whole number of at most {self.MOST:.0e}.", param, ctx)
        return number


class Group(click.Group):
    """A group whose commands are listed under headings and may have had another name.

    Parameters
    ----------
    sections : heading -> its commands, in the order of the help
    old_names : former name of a command -> its name
    """

    context_class = Context

    def __init__(
        self,
        *args: Any,
        sections: dict[str, tuple[click.Command, ...]],
        old_names: dict[str, str],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.old_names = old_names
        for commands in sections.values():
            for command in commands:
                self.add_command(command)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name or a former one."""
        return super().get_command(ctx, self.old_names.get(cmd_name, cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, with their summaries in one column."""
        width = max(map(len, self.commands))
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (f"{command.name:{width}}", command.get_short_help_str(formatter.width))
                        for command in commands
                    ]
                )


def names_in(pattern: str) -> Complete:
    """Return a completion of file or folder names without suffix, such as `measured/*`."""
    return lambda ctx, parameter, typed: sorted(
        path.stem if path.is_file() else path.name
        for path in Path().glob(pattern)
        if path.name.startswith(typed)
    )


def keys_of(*paths: str) -> Complete:
    """Return a completion of the top-level keys of YAML files (a pattern: parsing is slow)."""

    def complete(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        text = "\n".join(Path(path).read_text("utf-8") for path in paths if Path(path).is_file())
        keys = re.findall(r"^([\w.-]+):", text, re.M)
        return [key for key in keys if key.startswith(typed)]

    return complete


RUN = names_in("measured/[!.]*")
STUDY = keys_of("config/studies.yaml", "config/sweeps.yaml")
MODEL = keys_of("config/workloads.yaml")
DEVICE = names_in("config/devices/*.yaml")
PATH = click.Path(path_type=Path)
OUTPUT_FILE = OutputFile()
POSITIVE = Finite(min=0, min_open=True)
NOT_NEGATIVE = Finite(min=0)
COUNT = Integer(min=1)
