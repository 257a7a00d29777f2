"""A landing page of planted runs, figures and published numbers, for tests to look at."""

from pathlib import Path

from epochwatt.analysis.advice import write_advice
from epochwatt.analysis.collect_study import export_tables
from epochwatt.analysis.energy_parts import write_energy_parts
from epochwatt.claims.claims_table import ClaimRow, write_claims_table
from epochwatt.pages.site import Results, write_index

TITLES = {"lenet": "LeNet-5", "host": "the machine at hand", "agx": "AGX Xavier"}
PALETTE = {"stall": "#111111", "compute": "#222222", "overhead": "#333333"}
METERED = {"energy_wh": 0.05, "power_mean_w": 45.0, "power_scope": "gpu"}
FIGURE = {
    "backend": "twin",
    "paper": "sigmetrics2023",
    "section": "5.1",
    "title": "Time by workers",
}
FIGURE |= {"caption": "What one sees", "claims": ["T5.1.1a"], "words": ["AGX Xavier"]}
COLUMNS = "run,backend,device,instance,model,storage,num_workers,batch_size,power_mode,epoch_set,"
COLUMNS += "quantity,value,missing,published,published_hi,published_id,published_qualifier,"
COLUMNS += "seen_by_fit,is_off\n"
DRAWN = "r,twin,agx,d1,lenet,hdd,0,16,g,1+,stall_s,22.0871,,22.0,,S5.1.3-01,exact,True,False\n"
VALIDATED = "published_id,metric,published_value,fitted_prediction,fitted_error_pct,"
VALIDATED += "held_out_prediction,held_out_error_pct,seen_by_fit,unit,qualifier\n"
JUDGED = "S5.1.3-01,stall_s,22,21,4.6,20,9.1,yes,s,exact\n"
JUDGED += "RS5.1.3-01,stall_s,2.5,2.0118,21.726,1.868,29.1,yes,x,exact\n"
JUDGED += "RS5.1.7-06,e2e_s,1.8..3.9,1.3..2.7,,1.3..2.3,,no,x,approx\n"
BESIDE = "backend,quantity,value,value_hi,published,published_hi,published_id,"
BESIDE += "published_qualifier,seen_by_fit,is_off\n"
UNDRAWN = "twin,stall_s,2.0118,,2.5,,RS5.1.3-01,exact,True,True\n"
UNDRAWN += "twin,e2e_s,1.9,2.7,1.8,3.9,RS5.1.7-06,exact,False,False\n"


SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50" viewBox="0 0 100 50">'
    '<rect width="100" height="50"/></svg>'
)


def claim(**cells):
    row = dict.fromkeys(ClaimRow._fields, "") | {"claim": "T5.1.1a", "takeaway": "5.1.1"}
    row |= {"paper": "sigmetrics2023", "role": "core", "backend": "twin", "form": "paper"}
    return ClaimRow(**row | {"status": "holds", "claim_text": "a < b"} | cells)


SCOPES = "".join(
    f"RUN,{epoch},{scope},{wh}\n"
    for epoch in range(3)
    for scope, wh in (("gpu", 0.05), ("cpu_package", 0.01))
)


EXPLAINED = """\
provenance,run,operators,launches_pct,arithmetic_pct,memory_pct,below_the_roof_pct,loader_pct,copy_pct,\
overhead_pct,explanation,next_mode
measured,RUN,all,10,20,30,5,25,5,5,"Bound by compute, its limit is memory.",2 cores: 10 % less time
measured,RUN,gemm,10,20,30,,,,,,
"""


TABLES = ("runs", "epochs", "advice", "energy_parts")


def plant(
    pairs,
    write_epochs,
    findings=(),
    figures=(),
    drawn="",
    judged="",
    undrawn="",
    scopes="",
    further=(),
    explanations="",
    further_numbers=(),
    overview="",
    **more,
):
    """Write `results/index.html` and the tables that it is from into the working folder.

    Parameters
    ----------
    pairs : each a run and its epochs, as `write_epochs` takes them
    figures : what differs from `FIGURE`
    drawn, judged, undrawn : rows of a figure's table, of the validation, of what no figure draws
    scopes : rows of energy.csv; RUN stands for the run's id
    further : pages that only some starts make
    explanations : table of explanations; RUN stands for the first run's id
    further_numbers : paths of further tables with published numbers
    overview : as of `write_index`
    more : further attributes of `Results`
    """
    published = Path("config/published").resolve()
    folder = Path("results/figures/twin")
    folder.mkdir(parents=True, exist_ok=True)
    Path("results/tables").mkdir()
    paths = [write_epochs(run.id, run.factors, *epochs) for run, epochs in pairs]
    energies = [str(Path(path).with_name("energy.csv")) for path in paths]
    for path, (run, _) in zip(energies, pairs, strict=True):
        lines = scopes.replace("RUN", run.id)
        Path(path).write_text(f"run,epoch,power_scope,energy_wh\n{lines}")
    export_tables(paths, {}, "results/tables/epochs.csv", "results/tables/runs.csv")
    write_advice(paths, "results/tables/advice.csv")
    records = {run.id: run.records for run, _ in pairs}
    write_energy_parts(paths, energies, "", records, "results/tables/energy_parts.csv")
    write_claims_table("results/claims.csv", findings)
    (folder / "fig02a.csv").write_text(COLUMNS + drawn)
    (folder / "fig02a.svg").write_text(SVG)
    Path("results/validation.csv").write_text(VALIDATED + judged)
    Path("results/tables/printed.csv").write_text(BESIDE + undrawn)
    tables = {name: f"results/tables/{name}.csv" for name in TABLES}
    tables |= {"claims": "results/claims.csv", "published": str(published)}
    tables["printed"] = "results/tables/printed.csv"
    tables["validation"] = "results/validation.csv" if judged else ""
    if explanations:
        tables["explanations"] = "results/tables/explanations.csv"
        Path(tables["explanations"]).write_text(explanations.replace("RUN", pairs[0][0].id))
    numbers = ["results/figures/twin/fig02a.csv", *further_numbers] if drawn else []
    shown = [FIGURE | {"stem": "results/figures/twin/fig02a"} | figure for figure in figures]
    results = Results(
        tables=tables,
        figures=shown,
        numbers=numbers,
        titles=TITLES,
        palette=PALETTE,
        further=further,
        **more,
    )
    write_index(results, "results/index.html", overview)
    return Path("results/index.html")
