# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of the table of skinning decompositions: error over seconds, one panel a sequence."""

from pathlib import Path

from _skinning_ways import AFFINE, CORRECTED, CPCA, DEM, DEM_4, DEM_8, PAPER_METHOD, RIGID, SAD, SMA


def plot(path: Path, results) -> None:
    """Error over processor seconds, one panel a sequence."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    styles = {
        SMA: ("#8c6d31", "o"),
        CORRECTED.format(SMA): ("#8c6d31", "P"),
        SAD: ("#7b4173", "o"),
        CORRECTED.format(SAD): ("#7b4173", "P"),
        CPCA: ("#7f7f7f", "s"),
        DEM: ("#1f77b4", "v"),
        DEM_4: ("#1f77b4", "D"),
        DEM_8: ("#1f77b4", "^"),
        PAPER_METHOD: ("#2ca02c", "X"),
        RIGID: ("#ff7f0e", "D"),
        AFFINE: ("#d62728", "*"),
    }
    columns = min(4, len(results))
    lines = -(-len(results) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(3.4 * columns, 3.1 * lines + 0.9), squeeze=False)
    for panel, ((name, bones), row) in zip(axes.flat, results.items(), strict=False):
        for column, (color, marker) in styles.items():
            result = row[column]
            if result.missing:
                continue
            seconds = result.processor
            if column.startswith((f"{SMA} +", f"{SAD} +")):
                seconds += row[column.split(" + ")[0]].processor
            panel.loglog(
                seconds,
                result.e_rms,
                marker,
                color=color,
                markersize=11 if column == AFFINE else 7,
                markeredgecolor="white",
                label=column,
            )
        panel.set_title(f"{name}, {bones} bones", fontsize=10)
        panel.grid(True, which="both", alpha=0.25)
        panel.tick_params(labelsize=8)
    for panel in axes[-1]:
        panel.set_xlabel("processor time in seconds", fontsize=9)
    for panel in axes[:, 0]:
        panel.set_ylabel("E_RMS, ‰", fontsize=9)
    for panel in axes.flat[len(results) :]:
        panel.set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=6, fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.9 / (3.1 * lines + 0.9), 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
