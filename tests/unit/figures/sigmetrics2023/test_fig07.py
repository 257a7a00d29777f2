"""Figure 7: the numbers plotted; power at the plug and of the module are never mixed."""

import pytest

from epochwatt.figures.sigmetrics2023.fig07 import draw

HEAD = "backend,device,instance,power_mode,dvfs,state,power_scope,power_w\n"
PLUG = (
    "twin,agx,d1,g,off,i,socket,13.0\ntwin,agx,d1,g,off,ii,socket,12.0\n"
    "twin,agx,d1,g,on,iii,socket,8.0\ntwin,agx,d1,g,,iv,socket,3.0\n"
    "twin,orin,d1,MAXN,off,i,socket,19.0\n"
)
MODULE = "twin,agx,d1,g,off,i,module,7.5\ntwin,agx,d1,a,off,i,module,\n"
OTHERS = "jetson,agx,d1,g,off,i,module,7.0\n"
COLUMNS = ("backend", "device", "power_mode", "state", "power_scope", "value", "missing")


@pytest.fixture
def draw_of(job_of, tmp_path):
    """Return a function that draws a table of idle powers; it gives the text of the picture."""

    def call(text, backend="twin"):
        (tmp_path / "idle.csv").write_text(HEAD + text, encoding="utf-8")
        draw(job_of("fig07", backend=backend, idle=str(tmp_path / "idle.csv")))
        return (tmp_path / "figures/fig07.svg").read_text("utf-8")

    return call


def test_bars_are_the_power_at_the_plug_where_a_meter_was_read(draw_of, numbers):
    svg = draw_of(PLUG + MODULE + OTHERS)
    agx, orin = ("twin", "agx", "g"), ("twin", "orin", "MAXN")
    assert numbers("fig07", *COLUMNS) == [
        *((*agx, "i", "socket", "13.0", ""), (*orin, "i", "socket", "19.0", "")),
        *((*agx, "ii", "socket", "12.0", ""), (*orin, "ii", "socket", "", "not simulated")),
        *((*agx, "iii", "socket", "8.0", ""), (*orin, "iii", "socket", "", "not simulated")),
        *((*agx, "iv", "socket", "3.0", ""), (*orin, "iv", "socket", "", "no Wake-on-LAN")),
    ]
    told = numbers("fig07", "device", "state", "published", "published_qualifier")
    assert [row for row in told if row[2]] == [("agx", "iv", "4.0", "less_than")]
    assert "(i) metrics logged, DVFS off" in svg
    assert "(iv) asleep (Wake-on-LAN), assumed" in svg
    assert "DVFS, paper: significant" in svg  # what a change of the state takes


def test_without_a_meter_the_module_tells_state_i_in_each_mode(draw_of, numbers):
    assert "none published" not in draw_of(MODULE + OTHERS)
    told = [row for row in numbers("fig07", *COLUMNS, "published") if row[3] == "i"]
    assert told == [
        ("twin", "agx", "g", "i", "module", "7.5", "", "7.527"),
        ("twin", "agx", "a", "i", "module", "", "not simulated", ""),
    ]


def test_backends_are_not_mixed(draw_of, numbers):
    draw_of(PLUG + OTHERS, backend="jetson")
    assert {row[0] for row in numbers("fig07", "backend")} == {"jetson"}
