"""The files that drawn command lines are about: small models, good and odd files, damaged models, traces and logs."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import regard
from regard.look.trace_files import write
from tests.training import toy, toy_labels

BRIEF = {"training.epochs": 1, "training.validations": 1}
ODD_JSON: list[Any] = [None, 3, -1, 1e300, "x", "", [], {}, [[]], True, "1", [None], {"a": 1}, 10**30]
DAMAGED = 12
"""models, traces and logs with one thing wrong, each"""


def build(folder: Path) -> None:
    """Make all files in an empty folder, the same ones every time."""
    draw = random.Random(1)
    _texts(folder)
    _models(folder)
    _traces(folder, draw)
    _priors(folder)
    for number in range(DAMAGED):
        _damage(folder, folder / f"damaged-{number}", number, draw)
    (folder / "comparison").mkdir()
    (folder / "comparison" / "plan.json").write_text('{"format": 1}')
    (folder / "out").mkdir()
    (folder / "out" / "old.txt").write_text("old")
    (folder / "out" / "link.txt").symlink_to("old.txt")
    (folder / "out" / "null.txt").symlink_to("/dev/null")


def _texts(folder: Path) -> None:
    pairs = "".join(f"{source}\t{target}\n" for source, target in toy.PAIRS)
    few = "".join(f"{source}\t{target}\n" for source, target in toy.PAIRS[:8])
    labels = "".join(f"{text}\t{label}\n" for text, label in toy_labels.TEXTS)
    lines = "".join(f"{source}\n" for source, _ in toy.PAIRS[:6])
    texts = {
        "pairs.tsv": pairs,
        "few.tsv": few,
        "labels.tsv": labels,
        "few-labels.tsv": "".join(f"{text}\t{label}\n" for text, label in toy_labels.TEXTS[:6]),
        "unknown-labels.tsv": "It is odd.\todd\n",
        "source.txt": lines,
        "target.txt": "".join(f"{target}\n" for _, target in toy.PAIRS[:6]),
        "short.txt": lines[: len(lines) // 2],
        "pairs.jsonl": "".join(json.dumps({"translation": {"en": a, "mr": b}}) + "\n" for a, b in toy.PAIRS[:8]),
        "labels.jsonl": "".join(json.dumps({"text": a, "label": b}) + "\n" for a, b in toy_labels.TEXTS[:8]),
        "broken.jsonl": '{"source": "a", "target": "b"}\n{"source": 3}\n{\n[]\n\n"x"\n' + "[" * 5000 + "\n",
        "empty.tsv": "",
        "blank.tsv": "\n\n\t\n",
        "no-tab.tsv": "a\nb\n",
        "same.tsv": "a\tb\n" * 30,
        "bom.tsv": "\ufeff" + few,
        "crlf.tsv": few.replace("\n", "\r\n"),
        "nul.tsv": "a\x00b\tc\x00\n" * 6,
        "long.tsv": f"{'word ' * 60}\t{'शब्द ' * 60}\n",
        "separators.txt": "a\u2028b\x85c\x0bd\n\u200d\n\U0001f600\n\u202eabc",
        "page.html": "<p>The <b>boy</b> sees a mango.</p>",
        "text.md": "# Rahul\n\n- sees *a* mango\n",
        "strings.json": '{"a": "The boy sees 5 mangos."}',
        "broken.json": '{"a": ',
        "table.csv": "id,text\n1,Rahul buys a house.\n",
        "gold.talp": "0-0 1p1\n" * 8,
        "wrong.talp": "0-0\nx\n",
        "tiny.toml": _recipe("rnn", toy.TINY | BRIEF),
        "tiny-transformer.toml": _recipe("transformer", _transformer()),
        "tiny-classify.toml": _recipe("classify", toy_labels.TINY | BRIEF),
        "odd.toml": "[model]\nheads = 'many'\n",
        "broken.toml": "[[[\n",
        "-dash.txt": lines,
        "new\nline.txt": lines,
        "\udcff.txt": lines,
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    (folder / "latin-1.tsv").write_bytes("café\tété\n".encode("latin-1") * 8)
    (folder / "utf-16.tsv").write_bytes(few.encode("utf-16"))
    (folder / "binary.bin").write_bytes(random.Random(1).randbytes(3000))
    (folder / "good.tsv.gz").write_bytes(gzip.compress(few.encode(), mtime=0))
    (folder / "cut.tsv.gz").write_bytes(gzip.compress(pairs.encode(), mtime=0)[:90])
    (folder / "fake.gz").write_bytes(few.encode())
    (folder / "folder").mkdir()
    (folder / "link.tsv").symlink_to("few.tsv")
    (folder / "dangling.tsv").symlink_to("nothing")
    (folder / "loop.tsv").symlink_to("loop.tsv")
    (folder / "locked.tsv").write_bytes(few.encode())
    (folder / "locked.tsv").chmod(0)


def _transformer() -> dict[str, Any]:
    sizes = {"width": 16, "heads": 2, "feedforward": 16, "encoder_layers": 1, "decoder_layers": 2}
    rest = {key: value for key, value in toy.TINY.items() if not key.startswith("model.")}
    return rest | {f"model.{key}": value for key, value in sizes.items()} | BRIEF


def _recipe(base: str, settings: dict[str, Any]) -> str:
    from regard.config.recipe_text import read_recipe, to_toml

    return f'base = "{base}"\n' + to_toml(read_recipe(base, settings))


def _models(folder: Path) -> None:
    for name in ("rnn", "transformer"):
        recipe = folder / ("tiny.toml" if name == "rnn" else "tiny-transformer.toml")
        regard.train(folder / "pairs.tsv", folder / name, recipe=recipe, device="cpu")
    regard.train(
        folder / "labels.tsv",
        folder / "classifier",
        task="classify",
        recipe=folder / "tiny-classify.toml",
        device="cpu",
    )


def _priors(folder: Path) -> None:
    regard.align(toy.PAIRS).save(folder / "priors")
    (folder / "damaged-priors").write_bytes((folder / "priors").read_bytes()[:-9])


def _traces(folder: Path, draw: random.Random) -> None:
    translator, classifier = (regard.load(folder / name, "cpu") for name in ("transformer", "classifier"))
    (answer,) = translator.answers(["The boy sees a mango."], details=True)  # type: ignore[union-attr]
    traces = answer.translations[0].traces  # type: ignore[union-attr]
    (label,) = classifier.answers(["The film is gripping."], details=True)
    write([*traces, *traces], folder / "traces.json")
    write([label.trace], folder / "label.json")  # type: ignore[union-attr, list-item]
    for number in range(DAMAGED):
        trace = copy.deepcopy(traces[0].as_dict())
        _replace_one(trace, draw)
        (folder / f"trace-{number}.json").write_text(json.dumps(trace))
    whole = (folder / "traces.json").read_bytes()
    (folder / "cut.json").write_bytes(whole[: len(whole) * 2 // 3])


def _replace_one(tree: Any, draw: random.Random) -> None:
    """Put something odd in one place of a JSON document, or take it away."""
    places = list(_places(tree))
    # Most places are numbers deep inside: those near the root are drawn as often.
    depth = draw.choice(sorted({depth for _, _, depth in places}))
    holder, key, _ = draw.choice([place for place in places if place[2] == depth])
    if draw.random() < 0.3:
        del holder[key]
    else:
        holder[key] = draw.choice(ODD_JSON)


def _places(tree: Any, depth: int = 0) -> Iterator[tuple[Any, Any, int]]:
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key, depth
        yield from _places(tree[key], depth + 1)


def _damage(folder: Path, model: Path, number: int, draw: random.Random) -> None:
    """A model's folder in which one file is damaged."""
    base = folder / draw.choice(["rnn", "transformer", "classifier"])
    shutil.copytree(base, model)
    shutil.rmtree(model / "training")
    files = sorted(path for path in model.iterdir() if path.is_file())
    file = files[number % len(files)]
    kind = draw.choice(["missing", "cut", "empty", "odd", "odd", "binary"])
    if kind == "odd" and file.suffix == ".json":
        tree = json.loads(file.read_bytes())
        _replace_one(tree, draw)
        file.write_text(json.dumps(tree))
    elif kind == "odd" and file.suffix in (".toml", ".jsonl"):
        lines = file.read_text(encoding="utf-8").split("\n")
        lines[draw.randrange(len(lines))] = draw.choice(["x", "x = 3", "[model]", "", '{"kind": "validation"}', "7"])
        file.write_text("\n".join(lines), encoding="utf-8")
    elif kind == "missing":
        file.unlink()
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "binary":
        file.write_bytes(draw.randbytes(200))
    else:
        os.truncate(file, file.stat().st_size // 2)
