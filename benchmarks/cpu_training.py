"""The translator on the CPU beside its peers, in one run: training, translating, and the article's recipe.

    python benchmarks/cpu_training.py --multi30k FOLDER --marathi TRAIN.tsv [--only PART ...] [--rounds 3] [--json FILE]

- training: Multi30k en→de, joint 8k subwords, bi-GRU 256 + GRU 512, embeddings 256, additive with input feeding, 64
  sentences a batch: real target tokens a second of JoeyNMT 2.3, OpenNMT-py 3.5 and this project, which is also measured
  without bf16, and without batching by length, to show what each brings.
- translation: the same model, beam 5, 1,014 sentences of 16 forced steps, 64 a batch: sentences a second.
- transformer-training, transformer-translation: the same for a Transformer of 3 + 3 blocks, width 256, 4 heads, 1,024
  features within, one embedding for source, target and output; translation greedily and by beam 5, and beside it
  CTranslate2 in float32. What differs between the systems' models is said in the docstrings of peers/.
- article: `--recipe article` on an English–Marathi table beside the per-step loop that tutorials teach, padded to the
  longest sentence.

Every side runs in a process of its own, from identical files of subwords; sides alternate, and medians are told. Peers
live in environments of their own under benchmarks/.peers, made on first use. The machine should be idle.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers.environments import measure

from regard.text.normal import tidy
from regard.text.vocabulary import SPECIAL, WORD_BEGINS, learn_subwords

Measure = Callable[[], dict[str, Any]]
PARTS = ("training", "translation", "transformer-training", "transformer-translation", "article")
BENCHMARKS = Path(__file__).resolve().parent
HERE = {**os.environ, "PYTHONPATH": f"{BENCHMARKS}{os.pathsep}{BENCHMARKS.parent}"}
"""the environment of our own side: this tree, whatever else is installed"""


def subword_files(multi30k: Path, folder: Path) -> None:
    """The same pieces for every system, joined by blanks; the mark of a blank is written ▁."""
    texts = {
        f"{part}.{side}": [tidy(line) for line in _lines(multi30k / f"{name}.{language}.gz")]
        for part, name in (("train", "train"), ("dev", "val"))
        for side, language in (("src", "en"), ("tgt", "de"))
    }
    vocabulary = learn_subwords([*texts["train.src"], *texts["train.tgt"]], 8000)

    def shown(token: int) -> str:
        return vocabulary.name(token).replace(WORD_BEGINS, "▁")

    for name, lines in texts.items():
        rows = (" ".join(map(shown, tokens)) for tokens in vocabulary.encode_all(lines))
        (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    pieces = [shown(token) for token in range(len(SPECIAL), len(vocabulary))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")


def _lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").rstrip("\n").split("\n")


def ours(*arguments: str) -> Measure:
    def run() -> dict[str, Any]:
        command = [sys.executable, "-m", "peers.regard_side", *arguments]
        done = subprocess.run(command, env=HERE, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
        report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return report

    return run


def training(folder: str, threads: str, updates: str, model: str) -> dict[str, Measure]:
    sizes = ("--updates", updates, "--warmup", "10")
    common = ("train", "--model", model, "--folder", folder, "--threads", threads, *sizes)
    return {
        "JoeyNMT": lambda: measure("joeynmt", *common),
        "OpenNMT-py": lambda: measure("opennmt", *common),
        "Regard, fp32, random batches": ours(*common, "--precision", "fp32", "--batches", "random"),
        "Regard, fp32": ours(*common, "--precision", "fp32"),
        "Regard, bf16": ours(*common, "--precision", "bf16"),
    }


def translation(folder: str, threads: str, model: str, beam: str) -> dict[str, Measure]:
    sizes = ("--beam", beam, "--batch", "64", "--steps", "16")
    common = ("translate", "--model", model, "--folder", folder, "--threads", threads, *sizes)
    compiled = {"CTranslate2": lambda: measure("ctranslate2", *common)}
    return {
        "JoeyNMT": lambda: measure("joeynmt", *common),
        "OpenNMT-py": lambda: measure("opennmt", *common),
        **(compiled if model == "transformer" else {}),  # it has no RNN
        "Regard, fp32": ours(*common, "--precision", "fp32"),
        "Regard, bf16": ours(*common, "--precision", "bf16"),
    }


def article(table: Path, threads: str) -> dict[str, Measure]:
    def child(code: str) -> Measure:
        def run() -> dict[str, Any]:
            done = subprocess.run(
                [sys.executable, "-c", f"import json; from pathlib import Path; {code}"],
                env=HERE, capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode:
                raise RuntimeError(done.stderr[-4000:])
            report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return report

        return run

    tutorial = (
        f"from peers.tutorial_loop import measure; print(json.dumps(measure(Path({str(table)!r}), 8, 1, {threads})))"
    )
    own = "from peers.regard_side import article; print(json.dumps(article(Path({!r}), 60, 5, {!r}, {})))"
    return {
        "tutorial's loop": child(tutorial),
        "Regard, fp32": child(own.format(str(table), "fp32", threads)),
        "Regard, bf16": child(own.format(str(table), "bf16", threads)),
    }


def tables(part: str, folder: str, options: argparse.Namespace) -> list[tuple[str, dict[str, Measure], str]]:
    """(name, sides, unit) of each comparison that belongs to a part."""
    threads, updates = str(options.threads), str(options.updates)
    if part == "article":
        return [(part, article(options.marathi, threads), "tokens")]
    model = "transformer" if part.startswith("transformer") else "rnn"
    if part.endswith("training"):
        return [(part, training(folder, threads, updates, model), "tokens")]
    beams = {"greedy": "1", "beam 5": "5"} if model == "transformer" else {"beam 5": "5"}
    return [(f"{part}, {name}", translation(folder, threads, model, beam), "sentences") for name, beam in beams.items()]


def compare(part: str, sides: dict[str, Measure], unit: str, rounds: int) -> dict[str, Any]:
    """All sides in turn, several times; the medians, and each by those of the peers."""
    result: dict[str, list[float]] = {name: [] for name in sides}
    padding: dict[str, float] = {}
    for _ in range(rounds):
        for name, run in sides.items():
            report = run()
            result[name].append(report[f"{unit}_per_second"])
            if "padded_tokens" in report:
                padding[name] = report["tokens"] / report["padded_tokens"]
            print(f"  {part}: {name}: {result[name][-1]:,.1f} {unit}/s", file=sys.stderr, flush=True)
    medians = {name: statistics.median(values) for name, values in result.items()}
    peers = [name for name in medians if not name.startswith("Regard")]
    print(f"\n{part}, {unit} a second, median of {rounds}; how many times as fast as {', '.join(peers)}")
    for name, median in medians.items():
        spread = f"{min(result[name]):,.0f} … {max(result[name]):,.0f}"
        times = "".join(f"   × {median / medians[peer]:.2f}" for peer in peers)
        real = f"   {100 * padding[name]:.0f} % of target positions real" if name in padding else ""
        print(f"  {name:30} {median:10,.1f}{times}   ({spread}){real}")
    return {"part": part, "unit": unit, "medians": medians, "all": result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multi30k", type=Path, help="holds train.en.gz, train.de.gz, val.en.gz, val.de.gz")
    parser.add_argument("--marathi", type=Path, help="a table of English–Marathi pairs")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.multi30k is None and set(options.only) != {"article"}:
        parser.error("--multi30k: needed for training and translation")
    if options.marathi is None and "article" in options.only:
        parser.error("--marathi: needed for article")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {options.threads} threads")
    with tempfile.TemporaryDirectory() as folder:
        if options.multi30k is not None:
            subword_files(options.multi30k, Path(folder))
        results = [
            compare(name, sides, unit, options.rounds)
            for part in options.only
            for name, sides, unit in tables(part, folder, options)
        ]
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
