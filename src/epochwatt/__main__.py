"""`python -m epochwatt` is the command `epochwatt`; of the package alone, `run` (Python 3.8)."""

import sys


def main() -> int:
    """Run the command line; return its exit status."""
    if sys.version_info >= (3, 11):
        try:
            from epochwatt.cli import main as command
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if missing.partition(".")[0] == "epochwatt":
                raise
        else:
            return command()
    else:
        missing = "Python 3.11"
    if sys.argv[1:2] == ["run"]:
        return _run(sys.argv[2:])
    print(
        f"error: all commands but `epochwatt run` need {missing}, which is not installed here\n"
        '  do: pip install "epochwatt[workflow]" (Python 3.11 or newer; about 700 MB)',
        file=sys.stderr,
    )
    return 1


def _run(words: "list[str]") -> int:
    """Run `epochwatt run [--json FILE] [--] COMMAND`."""
    from epochwatt.errors import EpochwattError
    from epochwatt.integrations.command import run_command

    json_file = ""
    if words[:1] == ["--json"]:
        json_file, words = "".join(words[1:2]), words[2:]
    if words[:1] == ["--"]:
        words = words[1:]
    if not words or words[0].startswith("-"):
        print("usage: epochwatt run [--json FILE] -- COMMAND", file=sys.stderr)
        return 2
    try:
        return run_command(words, json_file)
    except EpochwattError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":  # a tool that imports every module runs nothing
    sys.exit(main())
