"""Figure 9: the parts of an epoch, its energy and the base load in it, per power mode."""

import pytest

from epochwatt.figures.sigmetrics2023.fig09 import baseloads, draw
from epochwatt.figures.sigmetrics2023.modes import groups_of

HEAD = "backend,device,instance,power_mode,dvfs,state,power_scope,power_w\n"
IDLE = (
    HEAD
    + """\
twin,agx,d1,a,off,i,module,5.0
twin,agx,d1,g,off,i,module,9.0
twin,agx,d1,g,off,i,socket,13.0
twin,agx,d1,g,off,ii,module,1.0
jetson,agx,d1,b,off,i,module,2.0
twin,agx,d1,h,off,i,module,
"""
)


@pytest.fixture
def idle(tmp_path):
    path = tmp_path / "idle.csv"
    path.write_text(IDLE, "utf-8")
    return str(path)


@pytest.fixture
def paths(made_up):
    """Modes g and a of LeNet-5: energies of 72 and 40 J in 4 s."""
    return [
        made_up({}, {"energy_paper_wh": j / 3600}, power_mode=m) for m, j in (("g", 72), ("a", 40))
    ]


def test_times_are_the_three_parts_and_the_base_load_is_idle_power_times_e2e(
    paths, idle, made_up, job_of, numbers
):
    assert baseloads(idle, "twin") == {("agx", "d1", "a"): 5.0, ("agx", "d1", "g"): 9.0}
    job = job_of("fig09", *paths, made_up(model="resnet"), idle=idle)
    groups = groups_of(job)  # modes in order; one alone compares nothing
    assert [[bar.tick for bar in group] for group in groups] == [["a", "g"]]
    draw(job)
    parts = (("stall_s", "1.5"), ("compute_s", "2.25"), ("overhead_s", "0.25"), ("e2e_s", "4.0"))
    assert numbers("fig09a", "power_mode", "quantity", "value") == [
        (mode, quantity, value) for mode in "ag" for quantity, value in parts
    ]
    told = [(*k, float(v)) for *k, v in numbers("fig09b", "power_mode", "quantity", "value")]
    assert told == [
        (mode, quantity, pytest.approx(value))
        for mode, joule in (("a", 40), ("g", 72))
        for quantity, value in (
            *(("energy_paper_wh", joule / 3600), ("baseload_wh", joule / 7200)),
            ("baseload_pct", 50.0),
        )
    ]


def test_what_is_missing_says_so(paths, idle, made_up, job_of, numbers, tmp_path):
    draw(job_of("fig09", *paths))
    nothing = "no idle power of this mode"
    assert numbers("fig09b", "quantity", "value", "missing")[1:3] == [
        *(("baseload_wh", "", nothing), ("baseload_pct", "", nothing))
    ]
    assert nothing in (tmp_path / "figures/fig09b.svg").read_text("utf-8")
    draw(job_of("fig09", *(made_up(power_mode=mode) for mode in "ag"), idle=idle))
    assert numbers("fig09b", "quantity", "missing")[:3] == [
        ("energy_paper_wh", "not measured"),
        ("baseload_wh", ""),
        ("baseload_pct", "not measured"),
    ]
