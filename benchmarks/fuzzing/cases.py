"""Cases: which files are broken how, and which command gets them. A case is the same for the same seed."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from fuzzing.corpus_mutations import CORPUS
from fuzzing.file_mutations import ANY_FILE, Draw
from fuzzing.structured_mutations import json_value, mutations_of, toml_line, toml_value
from fuzzing.world import PAIRS

SETS = ("models", "corpora", "traces")
TEXTS = [PAIRS[0][0], "Sita wants xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!"]
FIXED = ["--device", "cpu", "--threads", "1"]
TRANSLATORS = ("rnn", "transformer")


@dataclass(frozen=True)
class Case:
    """One case: the arguments of a command, which runs in the case's folder, and what was broken."""

    arguments: list[str]
    changes: list[str]
    group: str  # by which outcomes are counted
    answers: int | None = None  # lines of results that are expected
    python: str = ""  # instead of a command: the kind of a model to load and use from Python


def draw_case(kind: str, seed: int, world: Path, here: Path) -> Case:
    """Create the broken files of a case in the empty folder `here`, and return the case."""
    draw = random.Random(f"{kind} {seed}")
    if kind == "corpora":
        return _corpus_case(draw, world, here)
    return _trace_case(draw, world, here) if kind == "traces" else _model_case(draw, world, here)


def honest_cases(world: Path, here: Path) -> list[Case]:
    """Return commands with honest files, whose results and memory the others are compared with."""
    for name in (*TRANSLATORS, "classify", "images", "captions"):
        shutil.copytree(world / "models" / name, here / name)
    cases = [Case(["translate", name, *TEXTS, *FIXED], [], name, len(TEXTS)) for name in TRANSLATORS]
    cases += [Case(["classify", "classify", *TEXTS, *FIXED], [], "classify", len(TEXTS))]
    cases += [Case([], [], name, python=name) for name in ("images", "captions")]
    return [*cases, Case(["train", str(world / "corpora/pairs.tsv"), *_training("rnn", world)], [], "train")]


def _model_case(draw: Draw, world: Path, here: Path) -> Case:
    kind = draw.choice(["rnn", "rnn", "transformer", "transformer", "classify", "classify", "images", "captions"])
    model = here / "model"
    shutil.copytree(world / "models" / kind, model)
    resumes = kind in ("rnn", "classify") and draw.random() < 0.12
    changes = _broken_model(model, draw, resumes)
    if draw.random() < 0.04:
        changes.append(_wrong_kind(model, world, draw))
    if kind in ("images", "captions"):
        return Case([], changes, kind, python=kind)
    data = str(world / "corpora" / ("labels.tsv" if kind == "classify" else "pairs.tsv"))
    few = str(world / "corpora" / ("few-labels.tsv" if kind == "classify" else "few.tsv"))
    if resumes:
        recipe = ["--recipe", str(world / f"{kind}.toml"), *FIXED]
        task = ["--task", "classify"] if kind == "classify" else []
        return Case(["train", data, "--out", "model", "--resume", *task, *recipe], changes, f"resume {kind}")
    command = draw.choice(["use"] * 6 + ["json", "look", "evaluate", "evaluate", "align", "history"])
    use = "classify" if kind == "classify" else "translate"
    if command == "history":
        return Case(["look", "model", "--history", "-o", "history.html"], changes, "history")
    if command == "evaluate":
        return Case(["evaluate", "model", few, *FIXED], changes, f"evaluate {kind}")
    if command == "align" and kind != "classify":
        return Case(["align", few, "--model", "model", *FIXED], changes, f"align {kind}")
    more = {"json": ["--json"], "look": ["--look", "out.json"]}.get(command, [])
    return Case([use, "model", *TEXTS, *more, *FIXED], changes, kind, len(TEXTS))


def _broken_model(model: Path, draw: Draw, resumes: bool) -> list[str]:
    """Break one to three files of a model's folder, and say how."""
    changes = []
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        files = sorted(filter(_is_own_file, model.iterdir()))
        if resumes:
            files += list(filter(_is_own_file, [model / "training/last.safetensors"])) * len(files)
        if not files:
            break
        file = draw.choice(files)
        structured = mutations_of(file)
        mutate = draw.choice(structured if draw.random() < 0.6 else ANY_FILE)
        changes.append(f"{file.relative_to(model)}: {mutate(file, draw)}")
    return changes


def _is_own_file(file: Path) -> bool:
    """Return whether a file may be broken: what a link leads to is not the case's."""
    return file.is_file() and not file.is_symlink()


def _wrong_kind(model: Path, world: Path, draw: Draw) -> str:
    """Replace a file by that of a model of another kind."""
    other = world / "models" / draw.choice(["rnn", "transformer", "classify", "images", "captions"])
    file = draw.choice(sorted(file.name for file in other.iterdir() if file.is_file()))
    target = model / file
    if target.is_symlink() or target.is_fifo() or target.is_socket():
        target.unlink()
    if not target.is_dir():
        shutil.copyfile(other / file, target)
    return f"{file}: that of {other.name}"


def _training(kind: str, world: Path) -> list[str]:
    task = ["--task", "classify"] if kind == "classify" else []
    return ["--out", "out", *task, "--recipe", str(world / f"{kind}.toml"), *FIXED]


def _corpus_case(draw: Draw, world: Path, here: Path) -> Case:
    names = [["pairs.tsv"], ["pairs.jsonl"], ["translation.jsonl"], ["source.txt", "target.txt"], ["pairs.tsv.gz"]]
    labelled = draw.random() < 0.3
    chosen = [draw.choice(["labels.tsv", "labels.jsonl"])] if labelled else draw.choice(names)
    folder = here / "corpus"
    folder.mkdir()
    for name in chosen:
        shutil.copyfile(world / "corpora" / name, folder / name)
    changes = []
    for _ in range(draw.choice([1, 1, 2, 3])):
        files = sorted(file for file in folder.iterdir() if file.is_file())
        if files:
            file = draw.choice(files)
            changes.append(f"{file.name}: {draw.choice(CORPUS)(file, draw)}")
    if draw.random() < 0.05:
        recipe = here / "recipe.toml"
        shutil.copyfile(world / ("classify.toml" if labelled else "rnn.toml"), recipe)
        changes.append(f"recipe.toml: {draw.choice([toml_value, toml_line])(recipe, draw)}")
    files_given = [f"corpus/{name}" for name in chosen]
    kind = "classify" if labelled else draw.choice(["rnn", "rnn", "transformer"])
    # To translate a book takes its time: long texts go to training, which skips them.
    long = "bomb" in str(changes) or sum(file.stat().st_size for file in folder.iterdir()) > 50_000
    command = "train" if long else draw.choice(["train"] * 4 + ["evaluate"] * 3 + ["align"] * 2 + ["lines"] * 3)
    model = str(world / "models" / kind)
    if command == "train" or (here / "recipe.toml").exists():
        training = _training(kind, world)
        if (here / "recipe.toml").exists():
            training[training.index("--recipe") + 1] = "recipe.toml"
            training += ["--set", "training.epochs=1"]  # without epochs it trains while dev improves, for minutes
        return Case(["train", *files_given, *training], changes, f"train {kind}")
    if command == "lines":
        use = "classify" if labelled else "translate"
        beam = [] if labelled else ["--beam", "1"]
        return Case([use, model, "-i", files_given[0], *beam, *FIXED], changes, f"{use} -i")
    if command == "align" and not labelled:
        with_model = ["--model", model, *FIXED] if draw.random() < 0.5 else FIXED[2:]
        return Case(["align", *files_given, *with_model], changes, "align")
    return Case(["evaluate", model, *files_given, *FIXED], changes, "evaluate")


def _trace_case(draw: Draw, world: Path, here: Path) -> Case:
    file = here / "traces.jsonl"
    shutil.copyfile(world / "traces.json", file)
    changes = []
    for _ in range(draw.choice([1, 1, 2, 4])):
        if file.is_file() and not file.is_symlink():
            mutate = json_value if draw.random() < 0.8 else draw.choice(ANY_FILE[:-2])
            changes.append(f"traces: {mutate(file, draw)}")
    output = draw.choice([[], ["-o", "out.html"], ["-o", "out.svg"], ["--view", "links"]])
    return Case(["look", "traces.jsonl", *output], changes, "look")
