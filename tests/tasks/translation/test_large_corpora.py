"""Training on corpora in memory-mapped files: the rules of small ones, exact resuming, the cache, weights, memory."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.config.recipe_text import read_recipe
from regard.tasks.registry import TRANSLATION
from regard.tasks.spec import Given, TrainingData
from regard.tasks.text_data import Pairs
from regard.tasks.translation import large_corpora
from regard.tasks.translation.task import TranslationTask
from regard.text.vocabulary import PAD
from regard.training.progress import Silent
from tests.tasks.small import small, usable
from tests.training import toy

PLAIN = {f"training.{name}": 0.0 for name in ("segmentation_dropout", "lower_case", "no_stop", "no_punctuation")}


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_corpora, "LARGE_BYTES", 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return toy.write_tsv(tmp_path / "pairs.tsv")


def both_tasks(
    data: Any, folder: Path, settings: dict[str, Any], seed: int = 1, **given: Any
) -> tuple[TranslationTask, TranslationTask, list[TrainingData[Pairs]]]:
    """The task of the data in files, and that of the same data in memory."""
    recipe = read_recipe("rnn", toy.TINY | settings)
    cached, listed = Given(data, cache=folder / ".regard-cache", **given), Given(data, **given)
    read = [TRANSLATION.data(each, recipe, Silent()) for each in (cached, listed)]
    tasks = [TRANSLATION.task(each, recipe, seed) for each in read]
    return tasks[0], tasks[1], read


def rows(task: TranslationTask, epoch: int) -> list[tuple[list[int], list[int]]]:
    """The sources and targets of an epoch, without padding."""
    batches = [make(torch.device("cpu")) for make in task.epoch(epoch)]
    return [
        ([token for token in source if token != PAD], [token for token in target if token != PAD])
        for batch in batches
        for source, target in zip(batch.source.tolist(), batch.expected.tolist(), strict=True)
    ]


@pytest.mark.parametrize("word_pairs", [0.0, 0.4])
def test_the_task_is_that_of_a_small_corpus(word_pairs: float, file: Path) -> None:
    large, listed, read = both_tasks(file, file.parent, PLAIN | {"training.word_pairs": word_pairs})
    assert list(read[0].train) == read[1].train and read[0].dev == read[1].dev
    assert read[0].max_characters == read[1].max_characters and read[0].lines == read[1].lines
    assert large.recipe == listed.recipe and large.facts == listed.facts and large.dev == listed.dev
    assert large.vocabularies.source.to_json() == listed.vocabularies.source.to_json()
    assert large.size == listed.size and large.limit == listed.limit
    assert large.batches_per_epoch() == listed.batches_per_epoch()
    assert large.smallest_batch_fraction == listed.smallest_batch_fraction
    assert sorted(rows(large, 1)) == sorted(rows(listed, 1))  # other batches of the same shapes
    assert rows(large, 1) == rows(large, 1) != rows(large, 2)
    for one, other in zip(large.model.parameters(), listed.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_limit_of_tokens(file: Path) -> None:
    long = "very " * 40
    with file.open("a", encoding="utf-8") as more:
        more.writelines(f"{long} {n}.\t{long} {n}.\n" for n in range(3))
    large, listed, _ = both_tasks(file, file.parent, {"training.max_tokens": 30})
    assert large.skipped == listed.skipped != [] and large.size == listed.size
    assert large.longest_source == listed.longest_source


def test_extra_pairs(file: Path) -> None:
    pairs = toy.pairs()
    extra = [(pairs[0].source, pairs[0].target), ("Sita buys water.", "सीता पाणी."), (pairs[0].source.upper(), "मुलगा")]
    large, listed, read = both_tasks(file, file.parent, PLAIN, extra=extra)
    assert read[0].extra == read[1].extra and read[0].extra_digest == read[1].extra_digest
    assert sorted(rows(large, 1)) == sorted(rows(listed, 1))


def test_a_dev_part_that_is_given(file: Path, tmp_path: Path) -> None:
    dev = toy.write_tsv(tmp_path / "dev.tsv", toy.PAIRS[:7])
    screen = toy.Watcher()
    model = small(tmp_path / "m", file, dev=dev, screen=screen)
    assert model.card["data"]["dev_pairs"] == 7 and model.card["data"]["train_pairs"] == 80
    assert "dev: 7 of its sources also occur in training" in screen.text


def test_a_run(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = toy.Watcher()
    small(tmp_path / "m", file, screen=screen)
    usable(tmp_path / "m")
    cache = tmp_path / ".regard-cache"
    assert f"64 pairs for training, 16 for validation, in {cache}" in screen.text
    kinds = [path.name.split("-")[0] for path in sorted(cache.iterdir())]
    assert kinds == ["texts", "tokens", "vocabulary"]
    monkeypatch.setattr("regard.corpora.texts._write_texts", None)  # the next run makes nothing
    monkeypatch.setattr("regard.corpora.tokens._write_tokens", None)
    small(tmp_path / "other", file)
    assert toy.weights(tmp_path / "other").keys() == toy.weights(tmp_path / "m").keys()
    for name, tensor in toy.weights(tmp_path / "m").items():
        assert torch.equal(tensor, toy.weights(tmp_path / "other")[name])


@pytest.mark.parametrize("interrupt_at", [1, 2])
def test_a_resumed_run_is_exact(interrupt_at: int, file: Path, tmp_path: Path) -> None:
    small(tmp_path / "whole", file)
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "m", file, screen=toy.Watcher(interrupt_at))
    small(tmp_path / "m", file, resume=True)
    for name, tensor in toy.weights(tmp_path / "whole").items():
        assert torch.equal(tensor, toy.weights(tmp_path / "m")[name])


def test_a_run_is_not_resumed_with_other_data(file: Path, tmp_path: Path) -> None:
    small(tmp_path / "m", file)
    with file.open("a", encoding="utf-8") as more:
        more.write("One more.\tअजून एक.\n")
    with pytest.raises(ValueError, match="begun with other data"):
        small(tmp_path / "m", file, resume=True)


def test_a_deleted_cache_is_made_again(file: Path, tmp_path: Path) -> None:
    import shutil

    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "m", file, screen=toy.Watcher(interrupt_on="update 4"))
    shutil.rmtree(tmp_path / ".regard-cache")
    small(tmp_path / "m", file, resume=True)
    small(tmp_path / "whole", file)
    for name, tensor in toy.weights(tmp_path / "whole").items():
        assert torch.equal(tensor, toy.weights(tmp_path / "m")[name])


def test_the_vocabulary_is_learned_from_a_sample(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_corpora, "SAMPLE", 30)
    screen = toy.Watcher()
    small(tmp_path / "m", file, screen=screen)
    usable(tmp_path / "m")
    assert "the vocabulary is learned from a sample of " in screen.text
    assert "message" in {entry["kind"] for entry in toy.log(tmp_path / "m") if "sample of" in str(entry.get("text"))}


@pytest.mark.parametrize("key", ["guided_attention", "glossary"])
def test_what_needs_an_alignment_is_refused(file: Path, tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match=rf"training.{key}: expected 0 for a corpus of more than"):
        small(tmp_path / "m", file, {f"training.{key}": 0.5})


def test_what_is_small_or_no_file_stays_in_memory(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path / "texts")
    monkeypatch.setattr(large_corpora, "LARGE_BYTES", file.stat().st_size)
    small(tmp_path / "small", file)
    assert not (tmp_path / ".regard-cache").exists()
    with pytest.raises(ValueError, match="cannot read"):
        small(tmp_path / "none", tmp_path / "none.tsv")


# Weights


def weighted(folder: Path) -> list[regard.Weighted]:
    first = toy.write_tsv(folder / "first.tsv", toy.PAIRS[:60])
    second = toy.write_tsv(folder / "second.tsv", toy.PAIRS[50:])
    return [regard.Weighted(first, 0.5), regard.Weighted([second], 3)]


def test_weighted_data_are_those_of_small_corpora(tmp_path: Path) -> None:
    large, listed, read = both_tasks(weighted(tmp_path), tmp_path, PLAIN)
    assert list(read[0].train) == read[1].train and read[0].dev == read[1].dev
    assert (read[0].name, read[0].lines) == (read[1].name, read[1].lines) == ("first.tsv:0.5, second.tsv:3", 90)
    assert large.recipe == listed.recipe and large.limit == listed.limit
    for task in (large, listed):
        epochs = [rows(task, number) for number in range(1, 9)]
        assert all(len(each) == pytest.approx(len(epochs[0]), rel=0.25) for each in epochs)
        threes = {str(row) for row in epochs[0] if epochs[0].count(row) == 3}
        assert len(threes) == sum(weight == 3 for weight in read[1].weights or ())
        assert epochs[0] != epochs[1]
    assert len(rows(large, 1)) == pytest.approx(sum(read[1].weights or ()), abs=1)


@pytest.mark.parametrize("large", [False, True])
def test_a_run_with_weights_resumes_exactly(large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not large:
        monkeypatch.setattr(large_corpora, "LARGE_BYTES", 10**9)
    data = weighted(tmp_path)
    small(tmp_path / "whole", data)
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "m", data, screen=toy.Watcher(interrupt_on="update 4"))
    small(tmp_path / "m", data, resume=True)
    for name, tensor in toy.weights(tmp_path / "whole").items():
        assert torch.equal(tensor, toy.weights(tmp_path / "m")[name])
    other = [regard.Weighted(data[0].data, 0.7), data[1]]
    with pytest.raises(ValueError, match="begun with other data"):
        small(tmp_path / "m", other, resume=True)


def test_weights_of_one_change_nothing(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of small data too: an epoch with weights of 1 has the batches of one without."""
    for limit in (0, 10**9):
        monkeypatch.setattr(large_corpora, "LARGE_BYTES", limit)
        plain, one = (
            TRANSLATION.data(Given(data, cache=tmp_path / "c"), read_recipe("rnn", toy.TINY), Silent())
            for data in (file, regard.Weighted(file))
        )
        recipe = read_recipe("rnn", toy.TINY)
        assert rows(TRANSLATION.task(plain, recipe, 1), 3) == rows(TRANSLATION.task(one, recipe, 1), 3)


# Memory

MEASURED = """
import sys
from pathlib import Path
from regard.config.recipe_text import read_recipe
from regard.tasks.registry import TRANSLATION
from regard.tasks.spec import Given
from regard.tasks.translation import large_corpora
from regard.training.progress import Silent
from tests.training import toy
import torch

large_corpora.LARGE_BYTES, large_corpora.SAMPLE = 0, 2000
recipe = read_recipe("rnn", toy.TINY | {"training.batch_sentences": 64})

def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))

def run(file):
    data = TRANSLATION.data(Given(Path(file), cache=Path(file).with_suffix(".cache")), recipe, Silent())
    task = TRANSLATION.task(data, recipe, 1)
    for make in task.epoch(1)[:50]:
        make(torch.device("cpu"))
    return anonymous()

run(sys.argv[1])
print(run(sys.argv[1]), run(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    """The memory of the process after a corpus, and after one three times as large."""
    rng = random.Random(1)
    words = [f"{chr(97 + n % 26)}{n}" for n in range(500)]
    files = []
    for size in (40_000, 120_000):
        lines = (f"{' '.join(rng.choices(words, k=12))}\t{' '.join(rng.choices(words, k=12))}\n" for _ in range(size))
        files.append(tmp_path / f"{size}.tsv")
        files[-1].write_text("".join(lines))
    command = [sys.executable, "-c", MEASURED, *map(str, files)]
    few, many = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    in_memory = 80_000 * 1000 / 1024  # kB: a pair with its tokens takes about 1,000 bytes in lists
    assert many - few < in_memory / 4, (few, many)
