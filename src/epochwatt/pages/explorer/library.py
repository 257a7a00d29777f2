"""Vega, Vega-Lite and Vega-Embed as one script that asks for nothing from a network."""

import os
from pathlib import Path

CACHE = ".cache"  # of the checkout; git ignores it


def library(cache: str | Path = CACHE) -> str:
    """Return the script; it sets `vegaEmbed` and no other name that a page might use.

    Putting it together takes two seconds, so it is kept by version.

    Parameters
    ----------
    cache : folder to keep it in
    """
    import vl_convert  # here: 88 MB, and only a page needs it

    version = f"{vl_convert.get_vega_version()}-{vl_convert.__version__}"
    path = Path(cache) / f"vega-{version}.js"
    if path.exists():
        return path.read_text("utf-8")
    names = (
        f"Vega {vl_convert.get_vega_version()}, Vega-Lite {vl_convert.get_vegalite_versions()[-1]}"
    )
    licence = (
        f"/*! {names}, Vega-Embed: BSD-3-Clause, University of Washington Interactive Data Lab */"
    )
    # in a function: as a script it would declare hundreds of names of one letter for the whole page
    text = f"{licence}\n(() => {{{vl_convert.javascript_bundle()}}})();\n"
    if "</script" in text.lower():
        raise ValueError(
            "Vega's script cannot stand in a page: it holds the end of a script element"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text, "utf-8")
    unfinished.replace(path)
    return text
