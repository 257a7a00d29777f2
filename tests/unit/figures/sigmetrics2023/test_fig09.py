"""Figure 9: the parts of an epoch, its energy and the base load in it, per power mode."""

import pytest

from epochwatt.figures.sigmetrics2023.baseload import baseloads
from epochwatt.figures.sigmetrics2023.fig09 import draw, groups_of

IDLE = """\
backend,device,instance,power_mode,dvfs,state,power_scope,power_w,power_error_pct,duration_s
twin,agx,d1,a,off,i,module,5.0,0.0,60.0
twin,agx,d1,g,off,i,module,9.0,0.0,60.0
twin,agx,d1,g,off,i,socket,13.0,0.0,60.0
twin,agx,d1,g,off,ii,module,1.0,0.0,60.0
jetson,agx,d1,b,off,i,module,2.0,0.0,60.0
twin,agx,d1,h,off,i,module,,,60.0
"""


@pytest.fixture
def idle(tmp_path):
    path = tmp_path / "idle.csv"
    path.write_text(IDLE, "utf-8")
    return str(path)


@pytest.fixture
def paths(made_up):
    """Modes g and a of LeNet-5: energies of 16 and 10 J in 4 s."""
    return [
        made_up({}, {"energy_paper_wh": j / 3600}, power_mode=m) for m, j in (("g", 72), ("a", 40))
    ]


def test_base_loads_are_those_of_state_i_by_the_boards_sensors(idle):
    found = {("agx", "d1", "a"): 5.0, ("agx", "d1", "g"): 9.0}
    assert baseloads(idle, "twin") == found
    assert baseloads("", "twin") == {}


def test_modes_stand_in_order_and_one_alone_compares_nothing(paths, made_up, job_of):
    groups = groups_of(job_of("fig09", *paths, made_up(model="resnet")))
    assert [[bar.tick for bar in group] for group in groups] == [["a", "g"]]


def test_times_are_the_three_parts(paths, idle, job_of, numbers):
    draw(job_of("fig09", *paths, idle=idle))
    assert numbers("fig09a", "power_mode", "quantity", "value") == [
        (mode, quantity, value)
        for mode in "ag"
        for quantity, value in (
            *(("stall_s", "1.5"), ("compute_s", "2.25"), ("overhead_s", "0.25")),
            ("e2e_s", "4.0"),
        )
    ]


def test_base_load_is_idle_power_times_e2e(paths, idle, job_of, numbers):
    draw(job_of("fig09", *paths, idle=idle))
    told = [(*k, float(v)) for *k, v in numbers("fig09b", "power_mode", "quantity", "value")]
    assert told == [
        ("a", "energy_paper_wh", pytest.approx(40 / 3600)),
        ("a", "baseload_wh", pytest.approx(20 / 3600)),
        ("a", "baseload_pct", pytest.approx(50.0)),
        ("g", "energy_paper_wh", pytest.approx(72 / 3600)),
        ("g", "baseload_wh", pytest.approx(36 / 3600)),
        ("g", "baseload_pct", pytest.approx(50.0)),
    ]


def test_mode_without_idle_power_says_so(paths, job_of, numbers, tmp_path):
    draw(job_of("fig09", *paths))
    told = numbers("fig09b", "quantity", "value", "missing")[1:3]
    assert told == [
        ("baseload_wh", "", "no idle power of this mode"),
        ("baseload_pct", "", "no idle power of this mode"),
    ]
    assert "no idle power of this mode" in (tmp_path / "figures/fig09b.svg").read_text("utf-8")


def test_missing_energy_is_named_and_the_base_load_is_not(made_up, idle, job_of, numbers, tmp_path):
    draw(job_of("fig09", *(made_up(power_mode=mode) for mode in "ag"), idle=idle))
    told = numbers("fig09b", "quantity", "missing")[:3]
    assert told == [
        ("energy_paper_wh", "not measured"),
        ("baseload_wh", ""),
        ("baseload_pct", "not measured"),
    ]
    assert "missing: not measured" in (tmp_path / "figures/fig09b.svg").read_text("utf-8")


def test_published_compute_stands_in_the_csv_as_it_is_printed(made_up, job_of, numbers):
    draw(job_of("fig09", *(made_up(power_mode=mode) for mode in "bc")))
    told = numbers("fig09a", "quantity", "published", "published_id")
    assert [row for row in told if row[1]] == [
        ("compute_s", "38.4", "S5.6.4-05"),
        ("compute_s", "40.5", "S5.6.4-06"),
    ]


def test_printed_changes_between_modes_are_below_the_bars(made_up, job_of, numbers, tmp_path):
    runs = [
        made_up({}, {"compute_s": compute_s}, model="resnet", power_mode=mode)
        for mode, compute_s in (("b", 2.0), ("c", 1.5))
    ]
    draw(job_of("fig09", *runs))
    told = numbers("fig09a", "published_id", "quantity", "published", "value", "is_relation")
    assert [row[:4] for row in told if row[4]] == [
        ("RS5.6.4-01", "compute_s 100*(B-A)/A", "-22.3", "-25.0")
    ]
    assert ">b→c<" in (tmp_path / "figures/fig09a.svg").read_text("utf-8")


def test_share_of_the_base_load_stands_in_the_printed_range(made_up, job_of, numbers, tmp_path):
    modes = "abcdefghij"
    head = "backend,device,instance,power_mode,dvfs,state,power_scope,power_w\n"
    rows = [f"twin,agx,d1,{m},off,i,module,{n + 1}\n" for n, m in enumerate(modes)]
    (tmp_path / "idle.csv").write_text(head + "".join(rows), "utf-8")
    about = {"e2e_s": 3600.0, "energy_paper_wh": 20.0}
    runs = [made_up({}, about, model="mobilenet", power_mode=m) for m in modes]
    draw(job_of("fig09", *runs, idle=str(tmp_path / "idle.csv")))
    told = numbers("fig09b", "published_id", "value", "value_hi", "published", "published_hi")
    (share,) = [row for row in told if row[0] == "RS5.6.2-02"]
    assert [float(cell) for cell in share[1:]] == [5.0, 50.0, 20.0, 45.0]
    svg = (tmp_path / "figures/fig09b.svg").read_text("utf-8")
    assert "published share" in svg


def test_bracket_of_a_spread_is_parted_over_the_modes_that_it_leaves_out(made_up, job_of):
    paths = [
        made_up({}, {"energy_paper_wh": 0.1 + 0.01 * n}, power_mode=m, setup="sigmetrics2023")
        for n, m in enumerate("abcdefghijklmn")
    ]
    job = job_of("fig09", *paths)
    draw(job)
    texts = [text for text, _, _ in job.saved["fig09b"]]
    lines = [line for axes in texts[0].get_figure(root=True).axes for line in axes.lines]
    brackets = [list(line.get_xdata()) for line in lines if len(line.get_xdata()) == 4]
    assert brackets == [[0, 0, 5, 5], [10, 10, 13, 13]]
    words = [" ".join(text.get_text().split()) for text in texts]
    assert "spread, a to f, k to n: ≈27 %, here 56.5 %" in words
