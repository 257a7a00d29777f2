"""Adapter of the rules plot_{figure}: config/plotting.yaml names the function that draws."""

from epochwatt.served.figures import draw


def main(snakemake):
    draw(
        log=snakemake.log[0],
        folder=snakemake.params.folder,
        style=snakemake.input.style,
        epochs=snakemake.input.epochs,
        idle=snakemake.input.idle or "",
        comparisons=snakemake.input.comparisons or "",
        predictions=snakemake.input.predictions or "",
        published=f"{snakemake.params.config}/published",
        twin=f"{snakemake.params.config}/twin",
        captions=snakemake.params.caption,
        **snakemake.params.figure,
    )


if "snakemake" in globals():
    main(snakemake)  # noqa: F821
