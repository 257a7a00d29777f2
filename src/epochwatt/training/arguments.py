"""The arguments that all programs have which measure (board side: Python 3.6 grammar)."""

import argparse


def measuring_parser(
    program: str, description: str, subject: str, part: str
) -> argparse.ArgumentParser:
    """Return a parser for what is measured, which part of it, where data lie and records go.

    Parameters
    ----------
    program, description : for its help
    subject : what is measured, `run` or `sweep`: the option of its id
    part : what `--first` and `--last` count
    """
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--" + subject, required=True, help="id of the " + subject)
    parser.add_argument("--factors", required=True, help="its canonical factors, as JSON")
    parser.add_argument("--first", type=int, required=True, help="first {}".format(part))
    parser.add_argument("--last", type=int, required=True, help="last {}".format(part))
    parser.add_argument("--measured", required=True, help="folder of all measurements")
    parser.add_argument("--data-root", required=True, help="folder that holds the data sets")
    parser.add_argument("--receipt", required=True, help="file to write when all are measured")
    parser.add_argument(
        "--machine", required=True, help="what to know of the machine (device.machine), as JSON"
    )
    return parser
