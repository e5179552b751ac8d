"""`regard align` without a model beside eflomal: error rates on gold links, time and memory, in one run.

    python benchmarks/align_pairs.py --data FOLDER [--pairs fr de es] [--rounds 3] [--large 200000] [--json FILE]

Both align the same text (bitext.py says which and how it is made), of which the gold sentences are the first lines, as
text alone. eflomal is random: it runs --rounds times, and the run in the middle counts, with its best symmetrization,
which gold links choose. `regard align` runs as a command, so its time includes the start and the files; eflomal's is
that of its aligner alone, without symmetrization.

--large aligns so many pairs: the French bitext repeated. Regard computes equal pairs once; with --distinct every repeat
has a further token on both sides, so that no two pairs are equal. --new aligns the gold sentences alone, with the
priors that were learned from the rest of the bitext.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bitext import PAIRS, Sentences, bitext
from peers.environments import measure

from regard.alignment.error_rate import error_rate
from regard.alignment.links import Gold, Links, read_gold, read_links
from regard.alignment.symmetrize import SYMMETRIZATIONS, symmetrize


class Run(NamedTuple):
    """One run of a system."""

    seconds: float
    peak_bytes: int
    links: dict[str, list[Links]]
    """by the name of the symmetrization"""


def write_sides(rows: Sequence[Sentences], folder: Path) -> tuple[Path, Path]:
    files = folder / "source", folder / "target"
    for side, path in enumerate(files):
        path.write_text("".join(f"{row[side]}\n" for row in rows), encoding="utf-8", newline="\n")
    return files


def eflomal(rows: Sequence[Sentences], folder: Path, scored: int) -> Run:
    source, target = write_sides(rows, folder)
    both = folder / "forward", folder / "backward"
    names = ("source", "target", "forward", "backward")
    files = dict(zip(names, (source, target, *both), strict=True))
    report = measure("eflomal", *(word for name, path in files.items() for word in (f"--{name}", str(path))))
    forward, backward = (read_links(path)[:scored] for path in both)
    links = {"forward": forward, "backward": backward}
    for how in SYMMETRIZATIONS:
        links[how] = [symmetrize(*each, how) for each in zip(forward, backward, strict=True)]
    return Run(report["seconds"], report["peak_bytes"], links)


def regard(rows: Sequence[Sentences], folder: Path, scored: int, *options: str) -> Run:
    source, target = write_sides(rows, folder)
    out = folder / "links"
    command = [sys.executable, "-m", "regard", "align", str(source), str(target), "-o", str(out), "--quiet", *options]
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if status != 0:
        raise RuntimeError(f"{' '.join(command)} failed")
    return Run(seconds, usage.ru_maxrss * 1024, {"agreement": read_links(out)[:scored]})


def scores(runs: Sequence[Run], gold: Sequence[Gold]) -> dict[str, Any]:
    """The symmetrization with the lowest AER; of several runs, the one in the middle."""
    rates = {}
    for name in runs[0].links:
        some = sorted((error_rate(run.links[name], gold) for run in runs), key=lambda rate: rate.aer)
        rates[name] = some[len(some) // 2]
    best = min(rates, key=lambda name: rates[name].aer)
    return {"best": best, **rates[best].as_dict(), **cost(runs)}


def cost(runs: Sequence[Run]) -> dict[str, Any]:
    return {
        "seconds": sorted(run.seconds for run in runs)[len(runs) // 2],
        "peak_bytes": max(run.peak_bytes for run in runs),
    }


def show(name: str, result: dict[str, Any]) -> None:
    parts = [f"{result['seconds']:7.1f} s   {result['peak_bytes'] / 2**20:6.0f} MiB"]
    if "aer" in result:
        low, high = result["interval"]
        parts.append(f"AER {result['aer']:.3f} ({low:.3f} … {high:.3f})  P {result['precision']:.3f}")
        parts.append(f"R {result['recall']:.3f}   {result['best']}")
    print(f"  {name:24} {'   '.join(parts)}", flush=True)


def compare(data: Path, pair: str, rounds: int, new: bool) -> dict[str, Any]:
    """The error rates on the dev set of a pair of languages."""
    text = bitext(data, pair)
    gold = read_gold(text.links, [(len(one.split(" ")), len(other.split(" "))) for one, other in text.gold])
    print(f"{pair}: {len(text.train):,} pairs, the first {len(gold)} of them gold", flush=True)
    result: dict[str, Any] = {"pairs": len(text.train), "sentences": len(gold)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if rounds:
            result["eflomal"] = scores([eflomal(text.train, folder, len(gold)) for _ in range(rounds)], gold)
            show("eflomal", result["eflomal"])
        result["regard"] = scores([regard(text.train, folder, len(gold))], gold)
        show("regard align", result["regard"])
        if new:
            priors = str(folder / "priors")
            regard(text.rest, folder, 0, "--save", priors)
            result["new"] = scores([regard(text.gold, folder, len(gold), "--priors", priors)], gold)
            show("the gold alone, --priors", result["new"])
    return result


def repeated(rows: Sequence[Sentences], count: int, distinct: bool) -> list[Sentences]:
    result = [rows[number % len(rows)] for number in range(count)]
    if not distinct:
        return result
    marks = [f" mark{number // len(rows)}" for number in range(count)]
    return [(one + mark, other + mark) for (one, other), mark in zip(result, marks, strict=True)]


def large(data: Path, count: int, rounds: int, distinct: bool) -> dict[str, Any]:
    """Time and memory with many pairs."""
    rows = repeated(bitext(data, "fr").train, count, distinct)
    print(f"{len(rows):,} pairs: the French bitext repeated{', no two equal' if distinct else ''}", flush=True)
    result = {}
    with tempfile.TemporaryDirectory() as name:
        if rounds:
            result["eflomal"] = cost([eflomal(rows, Path(name), 0)])
            show("eflomal", result["eflomal"])
        result["regard"] = cost([regard(rows, Path(name), 0)])
        show("regard align", result["regard"])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="holds the folders that bitext.py names")
    parser.add_argument("--pairs", choices=PAIRS, nargs="*", default=list(PAIRS))
    parser.add_argument("--rounds", type=int, default=3, help="runs of eflomal; 0: without it")
    parser.add_argument("--large", type=int, default=0, metavar="PAIRS")
    parser.add_argument("--distinct", action="store_true")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {pair: compare(options.data, pair, options.rounds, options.new) for pair in options.pairs}
    if options.large:
        report["large"] = large(options.data, options.large, options.rounds, options.distinct)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
