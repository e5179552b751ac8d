"""What gpu_attention.py measured, as a picture.

    python benchmarks/plot_gpu.py FILE.json [FILE.json ...] --out docs/gpu.svg

Each bar is how many times as fast Regard is as the peer of that line; of a line in several files the last counts.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("files", nargs="+", type=Path)
    reader.add_argument("--out", type=Path, required=True)
    arguments = reader.parse_args()
    lines = {line["work"]: line for file in arguments.files for line in json.loads(file.read_text(encoding="utf-8"))}
    compared = [line for line in lines.values() if line["peer"]]
    draw(compared, arguments.out)


def draw(lines: list[dict[str, object]], out: Path) -> None:
    pyplot.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "regard", "font.size": 9}
    names = [f"{line['work']}\nbeside {line['peer']}" for line in lines]
    times = [float(str(line["peer_ms"])) / float(str(line["ours_ms"])) for line in lines]
    figure, axes = pyplot.subplots(figsize=(8, 0.5 * len(lines) + 1))
    axes.barh(names, [each - 1 for each in times], left=1, color="#3465a4")
    for place, each in enumerate(times):
        axes.text(1.04 * max(each, 1), place, f"{each:.2f} ×", va="center")
    axes.axvline(1, color="#888", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(0.9 * min(times), 1.7 * max(times))
    axes.set_xticks([1, 2, 5, 10, 20, 50], labels=["1", "2", "5", "10", "20", "50"])
    axes.minorticks_off()
    axes.set_xlabel("times as fast as the peer, in one run")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()
