"""Command lines drawn by rule: commands, options, values and files, then mutated. Case N is the same every time.

    python -m tests.commands.drawn_command_lines 10000          runs so many, in this process
    python -m tests.commands.drawn_command_lines 200 --from 57 --processes
    python -m tests.commands.drawn_command_lines 1 --from 57 --show

No command may end in a traceback: it exits with 0 and a result, or with 2 and a line on standard error, and changes no
file but those it was asked to write.
"""

from __future__ import annotations

import argparse
import random
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.commands.drawn_runs import CommandLine, World, fault
from tests.commands.drawn_world import DAMAGED
from tests.training.toy import PAIRS

Draw = random.Random
Value = Callable[[Draw], str]

MODELS = ["rnn", "transformer", "classifier"]
SUITED = {"classify": ["classifier"], "evaluate": MODELS}
ODD_FILES = [
    *("empty.tsv", "blank.tsv", "no-tab.tsv", "same.tsv", "bom.tsv", "crlf.tsv", "nul.tsv", "latin-1.tsv"),
    *("utf-16.tsv", "binary.bin", "good.tsv.gz", "cut.tsv.gz", "fake.gz", "folder", "link.tsv", "dangling.tsv"),
    *("loop.tsv", "locked.tsv", "broken.jsonl", "pairs.jsonl", "labels.jsonl", "missing.tsv", "missing/file.tsv"),
    *("long.tsv", "unknown-labels.tsv", "separators.txt", "rnn", "./-dash.txt", "tiny.toml", "traces.json"),
    *("/dev/null", "new\nline.txt", "\udcff.txt", ""),
]
ODD_VALUES = [
    *("", " ", "-", "--", "-1", "0", "1", "nan", "inf", "1e999", "9" * 25, "x", "é", "\udcff", "a\nb", "\x1b[2J"),
    *("a,b", "None", "true", "=", "../..", "x" * 300, "1.5", "٣", "0x10", "--help", "-q", "%s", "{}", "\U0001f600"),
]
TEXTS = [source for source, _ in PAIRS[:9]]
TEXTS += ["", " ", "unseen 漢字 😀", "a\u2028b", "x\x00y", "word " * 25, "- dash", "\udcff"]
PATTERNS = [
    *("full", "causal", "window(4) | global(0)", "per_head(causal, strided(4))", "random(2, 4, 1)", "grid(3, 4).row"),
    *("window(", "", "nothing", "window(-1)", "full &", "(" * 50, "window(4)" * 9, "blocks", "dilated(0, 0)"),
]
OUTPUTS = ["out/new.txt", "out/new.txt", "out/old.txt", "out/link.txt", "out/null.txt", "/dev/null"]
OUTPUTS += ["folder", "missing/a.txt"]
LOOKS = ["terminal", "terminal", "out/a.html", "out/a.svg", "out/a.svg", "out/a.json", "out/a.json"]
LOOKS += ["out/a.gif", "missing/a.svg", "folder", "/dev/null"]
COMPANIONS = {
    **{name: ["--sample"] for name in ("--temperature", "--top-k", "--top-p", "--seed")},
    "--view": ["--look", "out/a.svg"],
    "--show": ["--diagnose", "missed"],
    "--symmetrize": ["--model", "rnn", "--with", "rnn"],
    **{name: ["--model", "rnn"] for name in ("--with", "--method", "--next-step")},
    "--from": ["--to", "mr"],
    "--to": ["--from", "en"],
    "--calibrated": ["--json"],
    "--shards": ["--join"],
    "--shard-lines": ["--shards", "folder"],
    "--fallback": ["--min-confidence", "0.5"],
}
"""what an option is mostly given with, as it has no effect alone"""


def one_of(*values: str) -> Value:
    return lambda draw: draw.choice(values)


def whole(low: int, high: int) -> Value:
    return lambda draw: str(draw.randint(low, high))


def real(low: float, high: float) -> Value:
    return lambda draw: f"{draw.uniform(low, high):.2f}"


def model(draw: Draw, command: str = "translate") -> str:
    """Mostly one that suits the command."""
    if draw.random() < 0.12:
        return f"damaged-{draw.randrange(DAMAGED)}"
    return draw.choice(SUITED.get(command, ["rnn", "transformer"]) if draw.random() < 0.93 else MODELS)


def usually(*good: str) -> Value:
    """One of the good files, or an odd one."""
    return lambda draw: draw.choice(good if draw.random() < 0.75 else ODD_FILES)


def trace(draw: Draw) -> str:
    return draw.choice(["traces.json", "label.json", f"trace-{draw.randrange(DAMAGED)}.json", "cut.json"])


FLAG: Value = lambda draw: ""  # noqa: E731, a table of its own
SHARED: dict[str, Value] = {
    "--device": one_of(*["cpu"] * 6, "cuda:7", "gpu"),
    "--threads": one_of("1", "1", "1", "1", "0"),
    "--precision": one_of("auto", "fp32", "fp32", "bf16", "auto", "fp8"),
}
LOOKING: dict[str, Value] = {
    "--look": one_of(*LOOKS),
    "--view": one_of("grid", "links", "text", "sky"),
    "--json": FLAG,
    "--quiet": FLAG,
    "--output": one_of(*OUTPUTS),
    "-i": usually("source.txt", "few.tsv", "good.tsv.gz"),
}
OPTIONS: dict[str, dict[str, Value]] = {
    "translate": {
        **SHARED,
        **LOOKING,
        "-i": usually("source.txt", "few.tsv", "good.tsv.gz", "page.html", "text.md", "strings.json", "table.csv"),
        "--ensemble": model,
        "--beam": whole(0, 6),
        "--n-best": whole(0, 6),
        "--length-penalty": real(-1, 3),
        "--mbr": whole(0, 9),
        "--sample": FLAG,
        "--temperature": real(-0.5, 2),
        "--top-k": whole(0, 9),
        "--top-p": one_of("0.9", "1", "0.01", "0", "2", "x"),
        "--seed": whole(0, 9),
        "--prefix": one_of(*TEXTS),
        "--keep": one_of("numbers", "numbers,names", "markup,re:[A-Z]+", "re:(", "all", ""),
        "--columns": one_of("text", "source,x", ""),
        "--shards": one_of("out/shards", "folder", "few.tsv", "comparison"),
        "--shard-lines": whole(0, 3),
        "--workers": whole(0, 2),
        "--join": FLAG,
        "--confidence": FLAG,
        "--min-confidence": real(-0.2, 1.2),
        "--fallback": one_of("source", "source", "target"),
    },
    "classify": {**SHARED, **LOOKING, "-p": FLAG, "--calibrated": FLAG},
    "evaluate": {
        **SHARED,
        "--reverse": FLAG,
        "--from": one_of("en", "xx"),
        "--to": one_of("mr", "xx"),
        "--ensemble": model,
        "--beam": whole(0, 4),
        "--mbr": whole(0, 4),
        "--diagnose": one_of("missed", "repeated", "entropy", "punctuation", "end", "odd"),
        "--show": whole(0, 5),
        "--calibrated": FLAG,
        "--confidence": FLAG,
        "--json": FLAG,
    },
    "align": {
        **SHARED,
        "--model": model,
        "--with": model,
        "--priors": one_of("priors", "priors", "damaged-priors", "few.tsv", "missing", "folder"),
        "--save": one_of("out/priors", "out/priors", "folder", "missing/priors", "/dev/null"),
        "--look": one_of(*LOOKS),
        "--view": one_of("grid", "links", "text", "sky"),
        "--quiet": FLAG,
        "--symmetrize": one_of("union", "soft", "intersection", "grow-diag-final-and", "all"),
        "--method": one_of("argmax", "threshold", "mutual", "best"),
        "--min-weight": real(-0.2, 1.2),
        "--next-step": FLAG,
        "--layer": whole(0, 2),
        "--head": whole(0, 2),
        "--tokenize": FLAG,
        "--gold": one_of("gold.talp", "wrong.talp", "empty.tsv", "missing.talp"),
        "--output": one_of(*OUTPUTS),
        "--reverse": FLAG,
        "--from": one_of("en", "xx"),
        "--to": one_of("mr", "xx"),
        "--json": FLAG,
    },
    "look": {
        "--output": one_of(*LOOKS[2:]),
        "--history": FLAG,
        "--view": one_of("grid", "links", "text", "sky"),
        "--attention": one_of("cross", "encoder", "decoder", "pool", "gaze"),
        "--layer": whole(0, 2),
        "--head": whole(0, 2),
        "--pieces": FLAG,
    },
    "pattern": {"-n": whole(0, 80), "--keys": whole(0, 80), "--position": whole(-1, 50)},
    "train": {
        "--out": one_of("out/model", "out/model", "out/new/model", "few.tsv", "folder", "/proc/model", "/dev/null"),
        "--dev": usually("few.tsv", "few-labels.tsv"),
        "--reverse": FLAG,
        "--set": one_of(
            "training.warmup=1", "training.warmup=3", "training.epoch=1", "model.heads=3", "x", "search.beam=0"
        ),
        "--minutes": one_of("0", "-1", "nan", "x"),
        "--resume": FLAG,
        "--overwrite": FLAG,
        "--best": FLAG,
        "--keep-ensemble": FLAG,
        "--from": one_of("en"),
        "--to": one_of("mr"),
        "--seed": whole(-1, 5),
        "--quiet": FLAG,
        **SHARED,
    },
    "tune": {
        "--dev": usually("few.tsv", "few-labels.tsv"),
        "--replay": usually("few.tsv", "few-labels.tsv", "pairs.jsonl"),
        "--old-dev": usually("few.tsv", "few-labels.tsv"),
        "--out": one_of("out/model", "out/new/model", "rnn", "few.tsv", "folder", "/dev/null"),
        "--set": one_of("training.pull=0", "training.pull=x", "model.decoder=8", "search.beam=2", "x"),
        "--minutes": one_of("0", "-1", "nan", "x"),
        "--resume": FLAG,
        "--overwrite": FLAG,
        "--reverse": FLAG,
        "--json": FLAG,
        "--quiet": FLAG,
        "--seed": whole(-1, 5),
        **SHARED,
    },
    "compare": {
        "--dev": usually("few.tsv"),
        "--recipe": one_of("rnn", "transformer", "tiny.toml", "article", "classify", "odd.toml", "x"),
        "--vary": one_of(
            "model.score=general",
            "cross.normalizer=entmax15 encoder.pattern=window(2)",
            "model.score=x",
            "x",
            "=",
            "a=b",
        ),
        "--seeds": whole(0, 3),
        "--minutes": one_of("1", "0.5", "0", "x"),
        "--gold": usually("few.tsv", "gold.talp"),
        "--overwrite": FLAG,
        "--jobs": whole(0, 2),
        "--reverse": FLAG,
        "--from": one_of("en"),
        "--to": one_of("mr"),
        "--quiet": FLAG,
        "--device": SHARED["--device"],
        "--precision": SHARED["--precision"],
    },
    "demo": {"--minutes": one_of("0", "x", "-3"), "--seed": one_of("-1", "x")},
}
COMMANDS = ["translate"] * 22 + ["classify"] * 16 + ["evaluate"] * 15 + ["align"] * 15 + ["look"] * 18 + ["pattern"] * 8
COMMANDS += ["train"] * 4 + ["tune"] * 2 + ["compare"] * 3 + ["demo"]
RECIPES = ["odd.toml", "broken.toml", "no.toml", "tiny.toml", "tiny-transformer.toml"]


def command_line(number: int) -> CommandLine:
    """Case `number`."""
    draw = random.Random(number)
    command = draw.choice(COMMANDS)
    arguments = _positional(command, draw)
    known = OPTIONS[command]
    count = min(len(known), draw.choice([0, 0, 1, 1, 2, 2, 3, 4]))
    for name in draw.sample(sorted(known), count):
        value = known[name](draw)
        arguments += [name] if known[name] is FLAG else [name, value]
        if name in COMPANIONS and COMPANIONS[name][0] in known and draw.random() < 0.8:
            arguments += COMPANIONS[name]
    if command == "compare" and "--gold" in arguments:
        arguments += ["--gold", "gold.talp"]
    if command in ("translate", "classify") and draw.random() < 0.04:
        arguments += [
            "--look",
            draw.choice(["out/a.png", "out/a.json"]),
            *(["--evidence"] if draw.random() < 0.5 else []),
        ]
    if command == "demo":
        arguments += ["--minutes", "0"]  # a demo that is not refused takes minutes
    elif draw.random() < 0.3:
        for _ in range(draw.choice([1, 1, 2])):
            arguments = _mutated(arguments, draw)
    if command == "train":  # what is trained is always small
        suited = (
            "tiny-classify.toml" if "classify" in arguments else draw.choice(["tiny.toml", "tiny-transformer.toml"])
        )
        arguments += ["--recipe", suited if draw.random() < 0.8 else draw.choice(RECIPES)]
        if "--best" in arguments:  # several trainings take too long: refused, because there is nothing to resume
            arguments += ["--resume"]
    if command == "tune":
        arguments += ["--set", "training.epochs=1"]
    if command == "compare":  # refused at the latest because the comparison there began with other data
        arguments += ["--out", "comparison", "--resume"]
    return CommandLine([command, *arguments], _stdin(draw))


def _positional(command: str, draw: Draw) -> list[str]:
    if command in ("translate", "classify"):
        return [model(draw, command), *draw.sample(TEXTS, draw.choice([0, 1, 1, 2]))]
    if command == "align":
        given = ["--model", model(draw, command)] if draw.random() < 0.6 else []
        if draw.random() < 0.1:
            return [*given, "source.txt", draw.choice(["target.txt", "target.txt", "short.txt", "few.tsv", "rnn"])]
        return [*given, usually("few.tsv", "good.tsv.gz", "pairs.jsonl")(draw)]
    if command == "evaluate":
        given = model(draw, command)
        if draw.random() < 0.1:
            return [given, "source.txt", draw.choice(["target.txt", "target.txt", "short.txt", "few.tsv"])]
        good = (
            ["few-labels.tsv", "labels.jsonl"] if given == "classifier" else ["few.tsv", "good.tsv.gz", "pairs.jsonl"]
        )
        return [given, usually(*good)(draw)]
    if command == "look":
        return [trace(draw) if draw.random() < 0.7 else draw.choice([model(draw), draw.choice(ODD_FILES)])]
    if command == "train":
        task = draw.choice(["translate", "translate", "classify", "classify", "cook"])
        data = "labels.tsv" if task == "classify" else "few.tsv"
        given = [usually(data, "pairs.tsv")(draw), "--task", task]
        return given if draw.random() < 0.2 else [*given, "--out", "out/model"]
    if command == "tune":
        given = model(draw, "evaluate")
        new = usually("few-labels.tsv" if given == "classifier" else "few.tsv")(draw)
        return [given, new] if draw.random() < 0.2 else [given, new, "--out", "out/model"]
    if command == "compare":
        return [usually("few.tsv", "pairs.tsv", "pairs.jsonl")(draw)]
    return [draw.choice(PATTERNS)] if command == "pattern" else []


def _mutated(arguments: list[str], draw: Draw) -> list[str]:
    """One argument lost, doubled, moved, cut, misspelt or replaced, or a strange one put in."""
    result = list(arguments)
    place = draw.randrange(len(result)) if result else 0
    kind = draw.choice(["lose", "double", "swap", "cut", "misspell", "value", "file", "insert", "join", "strange"])
    if not result or kind in ("insert", "strange"):
        result.insert(place, draw.choice(["--strange", "-z", "--beem", "--"] if kind == "strange" else ODD_VALUES))
    elif kind == "lose":
        result.pop(place)
    elif kind == "double":
        result.insert(place, result[place])
    elif kind == "swap":
        other = draw.randrange(len(result))
        result[place], result[other] = result[other], result[place]
    elif kind == "cut":
        result[place] = result[place][: len(result[place]) // 2]
    elif kind == "misspell":
        result[place] = result[place][:-2] + result[place][-1:] * 2
    elif kind == "join" and place + 1 < len(result):
        result[place : place + 2] = [f"{result[place]}={result[place + 1]}"]
    else:
        result[place] = draw.choice(ODD_VALUES if kind == "value" else ODD_FILES)
    return result


def _stdin(draw: Draw) -> bytes:
    lines = [draw.choice(TEXTS).encode(errors="replace") for _ in range(draw.choice([0, 1, 3]))]
    return draw.choice([b"\n".join(lines), b"\r\n".join([*lines, b""]), b"ok\n\xff\xfe\n", b"\xef\xbb\xbfx\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--processes", action="store_true", help="each as a process of its own")
    parser.add_argument("--show", action="store_true", help="print what each said")
    options = parser.parse_args()
    faults, codes = 0, {0: 0, 2: 0}
    with tempfile.TemporaryDirectory() as folder:
        world, began = World(Path(folder)), time.monotonic()
        for number in range(options.first, options.first + options.count):
            line, started = command_line(number), time.monotonic()
            ended = world.run(line, options.processes)
            wrong, seconds = fault(line, ended), time.monotonic() - started
            faults, codes[ended.code] = faults + bool(wrong), codes.get(ended.code, 0) + 1
            if wrong or options.show or seconds > 5:
                report = f"regard {shlex.join(line.arguments)}".encode(errors="backslashreplace").decode()
                print(f"{number}: {wrong or 'fine'}, {seconds:.1f} s: {report}", flush=True)
            if wrong or options.show:
                print(
                    ended.trace or f"{ended.code}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}{ended.changed}",
                    flush=True,
                )
    print(f"{options.count} command lines in {time.monotonic() - began:.0f} s, {codes}: {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
