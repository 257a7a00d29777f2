"""Sphinx settings of the documentation site; `make docs-site` builds it (decision 0018)."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs")]

from epochwatt import __version__  # noqa: E402 (found through the line above)

project = "epochwatt"
author = "the epochwatt authors"
copyright = f"{author}, Apache 2.0"  # noqa: A001 (Sphinx reads this name)
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "docstrings",
]
exclude_patterns = ["_build"]

# Markdown: every heading of a page can be a link's target; a link that leads nowhere is a warning,
# and `make docs-site` turns warnings into errors.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "attrs_block", "dollarmath"]

# API reference from docstrings: modules are imported for that, none is run.
autodoc_default_options = {"members": True, "show-inheritance": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["flwr"]  # an extra that cannot stand beside our tools' versions
napoleon_google_docstring = False
napoleon_use_rtype = False
default_role = "code"  # `x` in a docstring
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # a word in a docstring that is the name of several attributes

html_theme = "pydata_sphinx_theme"
html_title = "epochwatt"
html_static_path = ["_static"]
html_css_files = ["epochwatt.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "light"}

copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
