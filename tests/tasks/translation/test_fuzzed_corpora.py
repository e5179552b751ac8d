"""Two thousand drawn corpora: each a clear error or a right result, never a crash, never a hang.

From the file to one update and a translation of every dev source, as `train` goes; only the files are smaller.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.config.recipe import Recipe
from regard.config.recipe_text import read_recipe
from regard.metrics.translation import group, score
from regard.tasks.translation.task import TranslationTask
from regard.tasks.translation.validation import translate_all
from regard.text.batches import Batch, arrange
from regard.text.pairs import read_pairs
from regard.text.split import split
from regard.training.loss import smoothed_loss
from tests.training import toy

ODD = [
    *"\u2028\u0085\u200d\ufeff\x00\x1f\x1c\r\U000e0001\U0010ffff\u0301ßİéｆ▁\"'\\.।",
    *("<pad>", "</s>", "<unk>", "<0x41>", "😀👨‍👩‍👧", "राहुल", "مرحبا"),
]
CHARACTERS = st.characters(exclude_categories=("Cs",))
WORD = st.one_of(
    st.sampled_from(["a", "b", "the", "boy", "boys", "आंबा", "x.", "?"]),
    st.sampled_from(ODD),
    st.text(CHARACTERS, min_size=1, max_size=3),
)
LONG = st.tuples(st.sampled_from(["a", "ab", "ा", "漢", "."]), st.integers(20, 80)).map(
    lambda drawn: drawn[0] * drawn[1]
)
"""a token of up to 240 bytes"""
SENTENCE = st.lists(WORD, max_size=3).map(" ".join)
SIDE = st.sampled_from([SENTENCE] * 20 + [CHARACTERS] * 4 + [LONG]).flatmap(lambda kind: kind)
PAIR = st.tuples(SIDE, SIDE)
PLAIN = [("the boy", "b"), ("a boy", "a b"), ("boys", "x"), ("the", "आंबा"), ("boy?", "x.")]
"""four sources that are distinct: one more, and there is enough for a dev part"""
CORPUS = st.one_of(
    st.lists(PAIR, max_size=8),
    st.lists(PAIR, min_size=6, max_size=12),
    st.lists(PAIR, min_size=1, max_size=6).map(lambda some: (PLAIN + some * len(some))[:30]),
)
FORMATS = st.sampled_from(["tsv", "tsv.gz", "jsonl", "translation", "parallel", "txt"])
TINY = toy.TINY | {
    "model.embedding": 4,
    "model.encoder": 2,
    "model.decoder": 4,
    "model.attention": 4,
    "vocabulary.size": 40,
    "training.batch_sentences": 8,
}
RECIPES = [
    read_recipe("rnn", TINY | chosen)
    for chosen in (
        {},
        {"vocabulary.joint": True, "model.tie": "all"},
        {"vocabulary.kind": "words", "vocabulary.size": 5},
        {"vocabulary.size": 1, "training.segmentation_dropout": 0.5, "training.no_stop": 0.9},
        {"model.order": "bahdanau", "model.cell": "lstm", "training.lower_case": 0.9},
    )
]


STEPS = 10
"""An untrained model goes on until it is stopped: that takes time and shows nothing new."""


def write(folder: Path, kind: str, corpus: list[tuple[str, str]]) -> list[Path]:
    """The corpus as files; what the format cannot hold is lost on the way, as with users."""
    if kind == "parallel":
        files = [folder / "a.txt", folder / "b.txt"]
        for side, file in enumerate(files):
            file.write_bytes("".join(pair[side] + "\n" for pair in corpus).encode())
        return files
    if kind in ("jsonl", "translation"):
        rows = [{"source": s, "target": t} if kind == "jsonl" else {"translation": {"x": s, "y": t}} for s, t in corpus]
        text = "".join(json.dumps(row, ensure_ascii=bool(number % 2)) + "\n" for number, row in enumerate(rows))
        (folder / "pairs.jsonl").write_bytes(text.encode())
        return [folder / "pairs.jsonl"]
    data = "".join(f"{source}\t{target}\n" for source, target in corpus).encode()
    file = folder / f"pairs.{kind}"
    file.write_bytes(gzip.compress(data, 1) if kind.endswith(".gz") else data)
    return [file]


def one_update_and_a_translation(paths: list[Path], recipe: Recipe, seed: int) -> None:
    corpus = read_pairs(paths)
    assert len(corpus.pairs) + sum(map(len, corpus.skipped.values())) == corpus.lines
    train, dev = split(corpus.pairs)
    setup = TranslationTask.of(train, dev, recipe, seed)
    for vocabulary, texts in (
        (setup.vocabularies.source, [pair.source for pair in corpus.pairs]),
        (setup.vocabularies.target, [pair.target for pair in corpus.pairs]),
    ):
        encoded = vocabulary.encode_all(texts)
        assert all(rows and min(rows) > 2 and max(rows) < len(vocabulary) for rows in encoded)
        if not vocabulary.words:
            assert [vocabulary.decode(rows) for rows in encoded] == texts
    examples = setup.examples.epoch(1)
    order = arrange(examples, 8, recipe.training.batch_tokens or 10**9, seed, 1)
    assert sorted(row for rows in order for row in rows) == list(range(len(train)))
    batch = Batch.of([examples[row] for row in order[0]])
    decoded = setup.model(batch.source, batch.lengths, batch.target)
    layer = setup.model.output
    expected = batch.expected.flatten()[batch.token_indices]
    loss, each = smoothed_loss(
        decoded.output.flatten(0, 1)[batch.token_indices], layer.weight, layer.bias, expected, 0.1
    )
    loss.backward()  # type: ignore[no-untyped-call]
    assert bool(loss.isfinite()) and len(each) == batch.tokens
    assert all(bool(x.grad.isfinite().all()) for x in setup.model.parameters() if x.grad is not None)
    setup.model.eval()
    limit = replace(setup.limit, longest=STEPS)
    sources, references = group(dev)
    result = translate_all(setup.model, setup.vocabularies, limit, sources, torch.device("cpu"))
    assert len(result) == len(sources) == len(references)
    texts = [setup.vocabularies.target.decode(hypothesis.tokens) for hypothesis in result]
    scores = score(texts, references)
    assert all(0 <= value < float("inf") for value in (scores.bleu, scores.chrf, scores.ter, scores.exact))


@settings(
    max_examples=2000,
    deadline=timedelta(seconds=20),
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(corpus=CORPUS, kind=FORMATS, recipe=st.sampled_from(RECIPES), seed=st.integers(0, 3))
def test_a_corpus_is_a_clear_error_or_a_right_result(
    corpus: list[tuple[str, str]], kind: str, recipe: Recipe, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), kind, corpus)
        message = what_is_wrong(paths, recipe, seed)
    assert message is None or (message and "\n" not in message)
    COUNTS["error" if message else "result"] += 1


def what_is_wrong(paths: list[Path], recipe: Recipe, seed: int) -> str | None:
    try:
        one_update_and_a_translation(paths, recipe, seed)
    except ValueError as error:
        return str(error)
    return None


COUNTS = {"error": 0, "result": 0}


def test_both_were_drawn_often() -> None:
    assert not sum(COUNTS.values()) or min(COUNTS.values()) > 200
