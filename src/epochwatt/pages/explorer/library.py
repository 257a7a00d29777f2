"""Vega, Vega-Lite and Vega-Embed as one script that asks for nothing from a network."""

import os
from importlib.metadata import version
from pathlib import Path

CACHE = ".cache"  # of the checkout; git ignores it
SNIPPET = "window.vegaEmbed = vegaEmbed;"
OWNER = "University of Washington Interactive Data Lab"


def library(cache: str | Path = CACHE) -> str:
    """Return the script; it sets the name `vegaEmbed` and no other.

    Putting it together takes two seconds, so it is kept by version.

    Parameters
    ----------
    cache : folder to keep it in
    """
    import vl_convert  # here: 88 MB, and only a page needs it

    vega, lite = vl_convert.get_vega_version(), vl_convert.get_vegalite_versions()[-1]
    path = Path(cache) / f"vega-{vega}-{version('vl-convert-python')}.js"
    if path.exists():
        return path.read_text("utf-8")
    licence = f"/*! Vega {vega}, Vega-Lite {lite}, Vega-Embed: BSD-3-Clause, {OWNER} */"
    # in a function: as a script it would declare hundreds of names of one letter for the whole page
    text = f"{licence}\n(() => {{{vl_convert.javascript_bundle(SNIPPET)}}})();\n"
    if "</script" in text.lower():
        raise ValueError("Vega's script cannot stand in a page: it ends a script element")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text, "utf-8")
    unfinished.replace(path)
    return text
