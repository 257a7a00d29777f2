"""`python -m epochwatt` is the command `epochwatt`."""

import sys


def main() -> int:
    """Run the command line; return its exit status."""
    try:
        from epochwatt.cli import main as command
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "epochwatt":
            raise
        print(
            f"error: the command line needs {error.name}, which is not installed\n"
            '  do: pip install "epochwatt[workflow]" (Python 3.11 or newer)',
            file=sys.stderr,
        )
        return 1
    return command()


if __name__ == "__main__":  # a tool that imports every module runs nothing
    sys.exit(main())
