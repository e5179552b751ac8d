"""Word alignment beside eflomal: the error rate on links that people gave, every symmetrization, in one table.

    python benchmarks/alignment.py --data FOLDER --pair fr --forward MODEL --backward MODEL [--next-step] [--json FILE]
    python benchmarks/alignment.py --data FOLDER --pair fr --links FORWARD BACKWARD
    python benchmarks/alignment.py --data FOLDER --pair fr --write-bitext FOLDER

Both sides see the same text (bitext.py says which and how it is made): eflomal aligns all of it, and the models are
those trained on the train.tsv that --write-bitext makes, one in each direction, or files of the traces they gave; the
gold sentences are in it as text alone. Gold links choose nothing but the best symmetrization of each side. --links
takes links made elsewhere instead of models, a line for each gold sentence, source first in both files. eflomal draws
at random: it runs --rounds times, and for each symmetrization the run in the middle is told. It lives in an
environment of its own under benchmarks/.peers, made on first use.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bitext import PAIRS, Bitext, bitext, write
from peers.environments import measure

from regard.alignment.aligner import AlignmentOptions, ForcedDecoder, link, weights
from regard.alignment.error_rate import ErrorRate, error_rate
from regard.alignment.extract import links_of
from regard.alignment.head_selection import HeadSelection
from regard.alignment.links import Gold, Links, read_gold, read_links
from regard.alignment.statistical import statistical_links
from regard.alignment.symmetrize import SYMMETRIZATIONS, symmetrize
from regard.look.trace import Trace
from regard.look.trace_files import read
from regard.text.normal import tidy

Found = dict[str, list[Links]]
"""symmetrization → the links of each gold sentence"""


def eflomal(text: Bitext) -> Found:
    with tempfile.TemporaryDirectory() as name:
        files = {part: Path(name) / part for part in ("source", "target", "forward", "backward")}
        for side, part in enumerate(("source", "target")):
            lines = "".join(f"{row[side]}\n" for row in text.train)
            files[part].write_text(lines, encoding="utf-8", newline="\n")
        arguments = [word for part, path in files.items() for word in (f"--{part}", str(path))]
        report = measure("eflomal", *arguments)
        print(f"eflomal: {report['seconds']:.1f} s", file=sys.stderr)
        return from_links(*(read_links(files[part])[: len(text.gold)] for part in ("forward", "backward")))


def from_links(forward: Sequence[Links], backward: Sequence[Links]) -> Found:
    result: Found = {"forward alone": list(forward), "backward alone": list(backward)}
    for how in SYMMETRIZATIONS:
        result[how] = [symmetrize(*both, how) for both in zip(forward, backward, strict=True)]
    return result


class Kept:
    """Traces of the gold sentences, made elsewhere by `write(translator.force_decode(sources, targets), file)`."""

    def __init__(self, path: Path) -> None:
        self._traces = {(trace.source.text, trace.target.text): trace for trace in read(path)}

    def force_decode(self, sources: Sequence[str], targets: Sequence[str]) -> list[Trace]:
        return [self._traces[tidy(source), tidy(target)] for source, target in zip(sources, targets, strict=True)]


def translator(path: Path) -> ForcedDecoder:
    from regard.tasks.registry import TRANSLATION, load_for

    return load_for(TRANSLATION, path) if path.is_dir() else Kept(path)


def models(text: Bitext, forward: Path, backward: Path, next_step: bool, end: bool) -> Found:
    turned = [(target, source) for source, target in text.gold]
    one = list(weights(text.gold, translator(forward), HeadSelection(next_step=next_step)))
    other = list(weights(turned, translator(backward), HeadSelection(next_step=next_step)))
    alone = ([links_of(each, end=end) for each in one], [_turned(links_of(each, end=end)) for each in other])
    result = from_links(*alone)
    for name, method in (("soft, threshold", "threshold"), ("soft, mutual", "mutual")):
        way = AlignmentOptions(method, "soft")  # type: ignore[arg-type]
        result[name] = [link(*both, way) for both in zip(one, other, strict=True)]
    return result


def statistics(text: Bitext) -> Found:
    """Our own aligner, which guides attention: both directions agree by themselves."""
    began = time.perf_counter()
    result = statistical_links([(source.split(" "), target.split(" ")) for source, target in text.train])
    print(f"Regard by statistics: {time.perf_counter() - began:.1f} s", file=sys.stderr)
    return {"by agreement": result[: len(text.gold)]}


def _turned(links: Links) -> Links:
    return frozenset((target, source) for source, target in links)


def rates(runs: Sequence[Found], gold: Sequence[Gold]) -> dict[str, list[ErrorRate]]:
    """Of each symmetrization, all runs, the one in the middle first."""
    result = {}
    for name in runs[0]:
        some = sorted((error_rate(run[name], gold) for run in runs), key=lambda rate: rate.aer)
        result[name] = [some.pop(len(some) // 2), *some]
    return result


def show(system: str, result: dict[str, list[ErrorRate]]) -> dict[str, Any]:
    best = min(result, key=lambda name: result[name][0].aer)
    print(f"\n{system}\n  {'':20}     AER   95 % interval   precision  recall")
    for name, some in result.items():
        rate = some[0]
        low, high = rate.interval
        all_runs = "" if len(some) == 1 else f"   runs {min(x.aer for x in some):.3f} … {max(x.aer for x in some):.3f}"
        print(
            f"  {name:20}   {rate.aer:.3f}   {low:.3f} … {high:.3f}       {rate.precision:.3f}   {rate.recall:.3f}"
            f"{all_runs}{'   best' if name == best else ''}"
        )
    return {
        "system": system,
        "best": best,
        "rates": {name: [rate.as_dict() for rate in some] for name, some in result.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="holds the folders that bitext.py names")
    parser.add_argument("--pair", choices=PAIRS, required=True)
    parser.add_argument("--forward", type=Path, metavar="MODEL", help="from the first language of the gold set")
    parser.add_argument("--backward", type=Path, metavar="MODEL", help="from the second")
    parser.add_argument("--next-step", action="store_true", help="read the attention one step later")
    parser.add_argument("--no-end", action="store_true", help="link also what looks at the end token most")
    parser.add_argument("--links", type=Path, nargs=2, metavar=("FORWARD", "BACKWARD"))
    parser.add_argument("--rounds", type=int, default=3, help="runs of eflomal; 0: without it")
    parser.add_argument("--write-bitext", type=Path, metavar="FOLDER", help="write the text, and stop")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if (options.forward is None) != (options.backward is None):
        parser.error("--forward and --backward go together")
    text = bitext(options.data, options.pair)
    sizes = [(len(source.split(" ")), len(target.split(" "))) for source, target in text.gold]
    gold = read_gold(text.links, sizes)
    words = [sum(row[side].count(" ") + 1 for row in text.train) for side in (0, 1)]
    counts = f"{len(text.train):,} pairs, {words[0]:,} and {words[1]:,} tokens"
    print(f"{options.pair}: {counts}, the first {len(gold)} of them gold; dev {len(text.dev):,}")
    if options.write_bitext is not None:
        write(text, options.write_bitext)
        return
    results = []
    if options.rounds:
        results.append(show("eflomal", rates([eflomal(text) for _ in range(options.rounds)], gold)))
    results.append(show("Regard, by statistics alone", rates([statistics(text)], gold)))
    if options.forward is not None:
        result = models(text, options.forward, options.backward, options.next_step, not options.no_end)
        results.append(show("Regard, one step later" if options.next_step else "Regard", rates([result], gold)))
    if options.links is not None:
        result = from_links(*(read_links(path)[: len(gold)] for path in options.links))
        results.append(show("links given", rates([result], gold)))
    if options.json:
        report = {"pair": options.pair, "pairs": len(text.train), "sentences": len(gold), "systems": results}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
