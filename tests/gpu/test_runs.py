"""Trainings on a GPU: resumed, ended by dev or by the clock, several that teach one; and ensembles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.runtime.cuda_graph import GraphCapturer
from regard.runtime.precision import float32_products
from regard.tasks.registry import TRANSLATION, load_for
from regard.tasks.translation.distillation import Teacher
from regard.text.batches import Batch
from regard.text.examples import Example
from regard.training import open_ended
from tests.gpu.commands import sentences, settings, some_pairs, works
from tests.gpu.test_translators import RNN, SHORT, WIDE

PAIRS = [("Rahul is a good boy.", "राहुल चांगला मुलगा आहे."), ("The girl reads.", "मुलगी वाचते.")]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return some_pairs(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("recipe", ["rnn", "transformer"])
@pytest.mark.parametrize("precision", ["auto", "bf16"])
def test_a_run_is_resumed(recipe: str, precision: str, pairs: Path, tmp_path: Path) -> None:
    values = SHORT | (RNN if recipe == "rnn" else WIDE)
    folder = tmp_path / "model"
    common = ("train", pairs, "--out", folder, "--recipe", recipe, *settings(**values), "--precision", precision, "-q")
    works(*common)
    again = works(*common[:-1], "--resume")
    assert "ended" in again.err


@pytest.mark.parametrize("recipe", ["rnn", "transformer"])
def test_a_run_that_dev_ends(recipe: str, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_ended, "MIN_INTERVAL", 10)
    monkeypatch.setattr(open_ended, "MIN_GAIN", 100.0)  # dev stalls as soon as it may
    values = {key: value for key, value in SHORT.items() if key != "training__epochs"}
    values |= RNN if recipe == "rnn" else WIDE
    works("train", pairs, "--out", tmp_path / "model", "--recipe", recipe, *settings(**values), "-q")
    works("translate", tmp_path / "model", "Rahul is a good boy.")


@pytest.mark.parametrize("others", [["rnn"], ["transformer"], ["rnn", "transformer"]])
def test_an_ensemble(others: list[str], pairs: Path, tmp_path: Path) -> None:
    """Its steps are captured and replayed as those of one model: the texts are those of the CPU."""
    folders = [tmp_path / f"{number}-{recipe}" for number, recipe in enumerate(["rnn", *others])]
    for seed, folder in enumerate(folders):
        values = SHORT | (RNN if folder.name.endswith("rnn") else WIDE)
        recipe = folder.name.split("-")[1]
        works("train", pairs, "--out", folder, "--recipe", recipe, *settings(**values), "--seed", seed, "-q")
    members = [word for folder in folders[1:] for word in ("--ensemble", folder)]
    texts = sentences(pairs, count=40)
    result = [
        works("translate", folders[0], *members, *texts, "--precision", "fp32", "--device", device).out.splitlines()
        for device in ("cuda", "cpu")
    ]
    same = sum(a == b for a, b in zip(*result, strict=True))
    assert same >= 36, f"{same} of 40 alike"


@pytest.fixture(scope="module")
def teachers(pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of an RNN and a Transformer."""
    folders = [tmp_path_factory.mktemp("teachers") / recipe for recipe in ("rnn", "transformer")]
    for folder in folders:
        values = SHORT | (RNN if folder.name == "rnn" else WIDE)
        works("train", pairs, "--out", folder, "--recipe", folder.name, *settings(**values), "-q")
    return folders


def test_teachers_predict_on_a_gpu_what_they_predict_on_a_cpu(pairs: Path, teachers: list[Path]) -> None:
    """Also in a CUDA graph, as part of an update."""
    found = []
    for device in ("cpu", "cuda"):
        first, second = (load_for(TRANSLATION, folder, device, "fp32") for folder in teachers)
        teacher = Teacher.of(first.ensemble(second))
        sides = [first.vocabularies.source, first.vocabularies.target]
        examples = [Example(*(side.encode(text) for side, text in zip(sides, pair, strict=True))) for pair in PAIRS]
        batch = Batch.in_few_shapes(examples, device)
        real = (batch.expected != 0).flatten()
        with float32_products(exact=True):
            found.append(teacher.probabilities(batch)[real].cpu())
            if device == "cuda":
                capturer = GraphCapturer(torch.device(device))
                with capturer.capture() as graph:
                    captured = teacher.probabilities(batch)
                graph.replay()
                found.append(captured[real].cpu())
    for each in found[1:]:
        torch.testing.assert_close(each, found[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("recipe", ["rnn", "transformer"])
@pytest.mark.parametrize("consistency", [0, 1])
def test_a_student(recipe: str, consistency: int, pairs: Path, teachers: list[Path], tmp_path: Path) -> None:
    values = SHORT | (RNN if recipe == "rnn" else WIDE) | {"training__consistency": consistency}
    named = [word for folder in teachers for word in ("--teacher", folder)]
    done = works("train", pairs, "--out", tmp_path / "m", "--recipe", recipe, *settings(**values), *named)
    assert "not captured" not in done.err and "taught by" in done.err
    works("translate", tmp_path / "m", "Rahul is a good boy.")


def test_the_best(pairs: Path, tmp_path: Path) -> None:
    """Members train side by side on the one GPU."""
    folder = tmp_path / "model"
    works(
        "train", pairs, "--out", folder, "--recipe", "rnn", *settings(**SHORT | RNN), "--best", "--keep-ensemble", "-q"
    )
    assert len(list((folder / "ensemble").iterdir())) == 4
    works("translate", folder, "Rahul is a good boy.")


def test_a_comparison(pairs: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "small.toml"
    values = [f"{key.replace('__', '.')} = {value}" for key, value in (SHORT | RNN).items()]
    recipe.write_text("\n".join(values))
    options = ("--recipe", recipe, "--vary", "model.score=general", "--seeds", 1, "--minutes", 0.3, "--jobs", 2, "-q")
    assert "Best: " in works("compare", pairs, "--out", tmp_path / "kinds", *options).out


def test_a_run_by_the_clock(pairs: Path, tmp_path: Path) -> None:
    works("train", pairs, "--out", tmp_path / "model", "--minutes", 0.5, "-q")
    works("translate", tmp_path / "model", "Rahul is a good boy.")


def test_the_doctor() -> None:
    done = works("doctor")
    assert "kernels on cuda:0" in done.out and "FAILED" not in done.out
    assert "yes    fused additive" in done.out and "ok     translator on cuda:0" in done.out


def test_the_demo(tmp_path: Path) -> None:
    assert "Rahul" in works("demo", "--out", tmp_path / "demo", "--minutes", 0.5).out
