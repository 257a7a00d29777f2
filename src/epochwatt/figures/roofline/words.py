"""What figures of rooflines say of themselves: titles, notes, captions, why one is not drawn."""

from collections.abc import Collection, Sequence

from epochwatt.figures.common import style
from epochwatt.figures.roofline import look
from epochwatt.roofline.points import Point
from epochwatt.text import NOT_DRAWN, POWER_SENSORS

HEADS = {  # begin the titles
    "measured": "measured on this machine",
    "simulated": "simulated",
    "public": "measured by others",
}
COUNTED = "fp32; operations and bytes of all kernels counted, each array read or written once"
NO_POWER = f"Power was not measured in any mode. {POWER_SENSORS}"
SHARED = (
    "Others used the machine while its ceilings were measured (machine_shared): it can do more "
    "than these lines say. On a quiet machine: epochwatt discard --shared, then start again."
)
TIME = """Lines: {best} the rates that the best micro-kernels reached; the
slope is memory, the flat part arithmetic, the corner the ridge. {marks}. Operations and bytes are
counted, each array read or written once; launches and waits keep workloads away from the roof."""
PEAKS = """Dotted, in the colour of its mode or grey: the peak that the data sheet promises at the
mode's clocks, a theory that nothing here reached."""
TIME_PUBLIC = """Orin Nano and NX: STREAM and matrix products in fp32, with dot products, sums and
matrix-vector products below them; AGX Orin 64 GB: 35 networks in fp32 (branes-ai/graphs), whose
clocks were left to DVFS, so it has no fitted roof; TX2: kernels of ResNet-18 and ResNet-50 (Energy
Time Fairness, SEC 2023), whose roof is what the best of them reach."""
ENERGY = """Operations per joule at the least time, over intensity: work, traffic and constant power
as fitted to the energies of kernels (Choi et al., 2013). {marks}. Open circles: the ridge, from
which on arithmetic limits time; diamonds: the energy balance, from which on arithmetic costs
more than memory. Where the diamond lies left of the circle, what is compute-bound in time is so in
energy."""
ENERGY_OF = {
    "public": """Power is that of the TX2's GPU rail alone. Held-out kernels are off by 34 %
(median): the line is a trend, no prediction. Short kernels lie below, since launches keep the GPU
waiting.""",
    "simulated": """A simulated GPU draws power while it is busy, whatever it does: its operations
cost next to nothing, its traffic and its time do.""",
}
MARKS = {"train": "Filled circles: training", "infer": "triangles: inference"}


def title(what: str, origin: str, n_roofs: int) -> str:
    """Return the title of a figure."""
    return style.titled(f"{what.capitalize()} roofline{'s' * (n_roofs != 1)}", HEADS[origin])


def note(origin: str, points: Sequence[Point], shares: Sequence[float]) -> str:
    """Return the corner note.

    Parameters
    ----------
    points : that are drawn
    shares : of the roof, that they reach, where there is one roof
    """
    text = f"{look.ORIGINS[origin]}; {COUNTED}"
    sizes = {point.batch_size for point in points}
    if len(sizes) == 1 and (size := sizes.pop()):
        text += f"; mini-batch size {size}"
    if shares:
        low, high = (round(100 * end) for end in (min(shares), max(shares)))
        reached = f"{low} to {high} %" if low < high else f"{low} %"
        text += f"; workloads reach {reached} of the roof"
    return text


def caption(
    what: str,
    origin: str,
    tasks: Collection[str],
    n_roofs: int,
    *,
    has_peaks: bool,
    is_shared: bool = False,
) -> str:
    """Return what the caption says: of nothing that is not drawn.

    Parameters
    ----------
    tasks : of the workloads that are drawn; empty: nothing is drawn
    n_roofs, has_peaks : lines that are drawn
    is_shared : others used the machine while its ceilings were measured
    """
    if not tasks:
        return f"{NOT_DRAWN}: {NO_POWER[0].lower()}{NO_POWER[1:]}."
    marks = "; ".join(words for task, words in MARKS.items() if task in tasks)
    marks = marks[0].upper() + marks[1:]
    shared = [SHARED] * is_shared
    if what == "energy":
        return " ".join([*shared, ENERGY.format(marks=marks), ENERGY_OF.get(origin, "")])
    mode = "the mode" if n_roofs == 1 else "each mode"
    best = "" if is_shared else f"what {mode} could do at best,"
    text = TIME.format(best=best, marks=marks)
    return " ".join(
        [*shared, text, *[PEAKS] * has_peaks, "In fp32.", *[TIME_PUBLIC] * (origin == "public")]
    )
