"""Figures: one rule and one job per figure number, all its panels. docs/how-to/add-a-figure.md: how to add one.

Needs: the `epochs.csv` of exactly the runs a figure draws, and their records, idle powers or predictions
where config/plotting.yaml says that it reads them; the published numbers; of simulated runs the verdicts
on what is published; the style file.
Gives: results/figures/{backend}/{panel}.{svg,png,csv,vl.json,txt}: picture, numbers, interactive form, caption;
{panel}.claims.csv: what does not hold, and by how much.
"""

# what a figure marks beside our numbers; its folder is where the published numbers are
PUBLISHED = {
    "claims": "config/claims.yaml",
    "measurements": "config/published/measurements.csv",
    "relations": "config/published/relations.csv",
    "seen": "config/twin/seen.csv",  # those that the simulation was fitted to
}
DRAWN = "results/figures/{backend}"


for FIGURE, ENTRY in SETTINGS.plotting.figures.items():

    # plot_fig02, plot_fig03 and so on: one for each entry of config/plotting.yaml
    rule:
        name:
            f"plot_{FIGURE}"
        input:
            **PUBLISHED,
            epochs=epochs_drawn(FIGURE),
            records=records_drawn(FIGURE),
            idle=idle_drawn(FIGURE),
            predictions=predictions_drawn(FIGURE),
            comparisons=judged_where_simulated,
            style="config/paper.mplstyle",
        output:
            svg=[panel_shown(FIGURE, panel) for panel in ENTRY.panels],
            png=[f"{DRAWN}/{panel}.png" for panel in ENTRY.panels],
            csv=[f"{DRAWN}/{panel}.csv" for panel in ENTRY.panels],
            spec=[f"{DRAWN}/{panel}.vl.json" for panel in ENTRY.panels],
            txt=[f"{DRAWN}/{panel}.txt" for panel in ENTRY.panels],
            claims=[f"{DRAWN}/{panel}.claims.csv" for panel in ENTRY.panels],
        log:
            f"results/logs/plot_{FIGURE}/{{backend}}.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            config=subpath(input.claims, parent=True),
            folder=subpath(output[0], parent=True),
            figure=figure_settings(FIGURE),
            caption=caption(FIGURE),
            # ENTRY.draw names the function that draws: epochwatt.figures.sigmetrics2023.fig02.draw
            code=code_of("plot_figure.py", drawing_module(ENTRY)),
        script:
            "../scripts/plot_figure.py"
