"""Which published numbers the fit sees, and the file that tells the figures."""

import shutil

from epochwatt.published.folds import judged
from epochwatt.published.numbers import load_published, load_seen
from epochwatt.twin.calibration.fit_numbers import seen_by_fit, seen_by_setups, write_seen


def test_the_file_says_what_the_fit_sees(request):
    """After a change of what is fitted: `epochwatt calibrate-twin`, as `make validate` does."""
    config = request.config.rootpath / "config"
    told = load_published(config / "published"), judged(config / "twin")
    facts, others = seen_by_fit(*told), seen_by_setups(*told)
    assert load_seen(config / "twin") == {fact.id for fact in [*facts, *others]}
    assert len(facts) > 100
    assert {fact.paper for fact in facts} == {"sigmetrics2023"}
    assert {fact.paper for fact in others} == {"hipcw2021"}


def test_it_is_written_in_the_order_of_the_paper(request, tmp_path):
    config = request.config.rootpath / "config"
    for folder in ("published", "twin"):
        shutil.copytree(config / folder, tmp_path / "config" / folder)
    (tmp_path / "config/twin/seen.csv").unlink()
    write_seen(tmp_path)
    written = (tmp_path / "config/twin/seen.csv").read_text("utf-8")
    assert written == (config / "twin/seen.csv").read_text("utf-8")
