"""The script of the charts: one file, kept by version, that sets one name and loads nothing."""

from epochwatt.pages.explorer.library import library


def test_script_is_put_together_once_and_stays_inside_its_element(tmp_path):
    text = library(tmp_path / "cache")
    (kept,) = (tmp_path / "cache").iterdir()
    assert kept.read_text("utf-8") == text
    assert text.startswith("/*! Vega 6")
    assert "BSD-3-Clause" in text.partition("\n")[0]
    assert "</script" not in text.lower()
    assert text.count("window.vegaEmbed=") == 1
    assert len(text) < 1_000_000

    kept.write_text("kept", "utf-8")
    assert library(tmp_path / "cache") == "kept"
