"""Traces to look at, made by hand: several scripts, pieces within words, steps, candidates, evidence, many heads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.look.history import Moment
from regard.look.trace import AlteredOutput, AttentionWeights, Candidate, Evidence, Matrix, Name, Side, Step, Trace
from regard.look.words import Span

CARD = {
    "languages": ["en", "mr"],
    "data": {"name": "english-marathi", "lines": 24000},
    "parameters": 8_400_000,
    "seed": 1,
    "minutes": 2.5,
    "scores": {"chrf": 71.3, "bleu": 48.2},
}

OLD_MAN = "The old man is reading a newspaper in the garden."
OLD_MAN_PIECES = ["The", "old", "man", "is", "read", "ing", "a", "news", "paper", "in", "the", "gard", "en", "."]
MARATHI = "म्हातारा माणूस बागेत वर्तमानपत्र वाचत आहे."
MARATHI_PIECES = ["म्हा", "तारा", "माणूस", "बागे", "त", "वर्तमान", "पत्र", "वाच", "त", "आहे", "."]
LOOKS = [(1,), (1, 2), (2,), (11, 12, 9), (12, 9), (7, 8), (8,), (4, 5), (5, 3), (3,), (13,), (14,)]
"""the source pieces that each Marathi piece looks at"""


def side(text: str, pieces: Sequence[str], language: str | None = None, end: bool = True) -> Side:
    """Pieces one after another, blanks between them left out; the end token behind."""
    spans, place = [], 0
    for piece in pieces:
        place = text.index(piece, place)
        spans.append(Span(piece, place, place + len(piece)))
        place += len(piece)
    return Side(text, [*spans, Span("", len(text), len(text))] if end else spans, language)


def looking(rows: Sequence[Sequence[int]], columns: int, sharpness: float = 4.0, seed: int = 0) -> Matrix:
    """[rows, columns]: each row adds up to 1, most of it where it should look."""
    energies = np.random.default_rng(seed).normal(0, 0.7, (len(rows), columns))
    for row, places in enumerate(rows):
        for place in places:
            energies[row, place % columns] += sharpness
    weights = np.exp(energies)
    return np.asarray(weights / weights.sum(1, keepdims=True), np.float32)


def steps(target: Side, others: Sequence[str]) -> list[Step]:
    drawn = np.random.default_rng(3)
    result = []
    for _ in target.pieces:
        chance = float(drawn.uniform(0.35, 0.97))
        shares = np.sort(drawn.dirichlet(np.ones(len(others))))[::-1] * (1 - chance) * 0.9
        names = drawn.permutation(list(others))
        result.append(
            Step(chance, [(str(name), float(fraction)) for name, fraction in zip(names, shares, strict=True)])
        )
    return result


def marathi(sharpness: float = 4.0) -> Trace:
    source, target = side(OLD_MAN, OLD_MAN_PIECES, "en"), side(MARATHI, MARATHI_PIECES, "mr")
    weights = looking(LOOKS, len(source.pieces), sharpness)[None, None]
    plain = Trace(source, target, [AttentionWeights("cross", weights)])
    words = plain.by_words()[2]
    drawn = np.random.default_rng(5)
    return Trace(
        source,
        target,
        plain.attentions,
        steps(target, ["वृद्ध", "माणसाने", "पुस्तक", "बाग", "", "वाचतो"]),
        [
            Candidate(MARATHI, -0.231, -2.77),
            Candidate("म्हातारा माणूस बागेत वर्तमानपत्र वाचतो.", -0.402, -4.42),
            Candidate("वृद्ध माणूस बागेत वर्तमानपत्र वाचत आहे.", -0.457, -5.48),
        ],
        CARD,
        [
            Evidence("leave one out", (6 * words + drawn.normal(0, 0.4, words.shape)).astype(np.float32), 0.63),
            Evidence("gradient × input", (words + np.abs(drawn.normal(0, 0.1, words.shape))).astype(np.float32), 0.41),
        ],
        [AlteredOutput("as it is", MARATHI, -2.77), AlteredOutput("uniform attention", "माणूस घरात आहे.", -31.5)],
    )


def arabic() -> Trace:
    source = side(
        "الرجل العجوز يقرأ الجريدة في الحديقة.", ["الرجل", "العجوز", "يقرأ", "ال", "جريدة", "في", "الحديقة", "."], "ar"
    )
    target = side(
        "The old man reads the newspaper in the garden.",
        ["The", "old", "man", "read", "s", "the", "news", "paper", "in", "the", "garden", "."],
        "en",
    )
    rows = [(0,), (1,), (0,), (2,), (2,), (3,), (4,), (4,), (5,), (6,), (6,), (7,), (8,)]
    weights = looking(rows, len(source.pieces))[None, None]
    return Trace(
        source, target, [AttentionWeights("cross", weights)], steps(target, ["elderly", "a", "garden", "park"])
    )


def into_arabic() -> Trace:
    there = arabic()
    weights = np.swapaxes(there.attentions[0].weights, 2, 3)
    weights = np.asarray(weights / weights.sum(-1, keepdims=True), np.float32)
    return Trace(
        there.target, there.source, [AttentionWeights("cross", weights)], steps(there.source, ["رجل", "كتاب", ""])
    )


def chinese() -> Trace:
    source = side("老人在花园里看报纸。", ["老人", "在", "花园", "里", "看", "报纸", "。"], "zh")
    target = side("The old man is reading a newspaper in the garden.", OLD_MAN_PIECES, "en")
    rows = [(0,), (0,), (0,), (4,), (4,), (4,), (5,), (5,), (5,), (1, 3), (2,), (2,), (2,), (6,), (7,)]
    return Trace(source, target, [AttentionWeights("cross", looking(rows, len(source.pieces))[None, None])])


def many_heads(layers: int = 3, heads: int = 4) -> Trace:
    """A cross, an encoder and a decoder attention; the last head of the last layer looks at the end token alone."""
    source, target = side(OLD_MAN, OLD_MAN_PIECES, "en"), side(MARATHI, MARATHI_PIECES, "mr")
    kinds: list[tuple[Name, Side, Side]] = [
        ("cross", target, source),
        ("encoder", source, source),
        ("decoder", target, target),
    ]
    result = []
    for name, rows, columns in kinds:
        places = LOOKS if name == "cross" else [(row,) for row in range(len(rows.pieces))]
        tables = [looking(places, len(columns.pieces), 1 + seed % 4, seed) for seed in range(layers * heads)]
        weights = np.stack(tables).reshape(layers, heads, len(rows.pieces), len(columns.pieces))
        if name == "cross":
            weights[-1, -1] = 0
            weights[-1, -1, :, -1] = 1
        result.append(AttentionWeights(name, weights))
    return Trace(source, target, result, steps(target, ["वृद्ध", "बाग", ""]), model=CARD)


def square(count: int, seed: int = 0, letters: str = "abcdefghijklmnopqrstuvwxyz") -> Trace:
    """`count` words look at `count` words, about in order."""
    drawn = np.random.default_rng(seed)
    texts = [["".join(drawn.choice(list(letters), drawn.integers(2, 9))) for _ in range(count)] for _ in range(2)]
    source, target = (side(" ".join(words), words, end=False) for words in texts)
    rows = [(int(place),) for place in np.clip(np.arange(count) + drawn.integers(-3, 4, count), 0, count - 1)]
    weights = looking(rows, count, 6 + np.log(count / 10))[None, None]
    return Trace(source, target, [AttentionWeights("cross", weights)], steps(target, texts[1][:5]))


def plain(source: str, target: str) -> Trace:
    """Each text a single piece."""
    return Trace(
        side(source, [source]),
        side(target, [target]),
        [AttentionWeights("cross", np.full((1, 1, 2, 2), 0.5, np.float32))],
    )


def label() -> Trace:
    """A classifier's answer about a text, as `regard classify` traces it."""
    text = "The dog ate my homework again."
    source = side(text, ["The", "dog", "ate", "my", "home", "work", "again", "."], end=False)
    weights = looking([(1, 4, 5)], len(source.pieces), 2.5)[None, None]
    answers = [("excuse", 0.874), ("news", 0.1), ("<i>advert</i>", 0.026)]
    counts = [[40, 3, 0], [5, 60, 1], [0, 2, 9]]
    scores = {"accuracy": 90.83, "macro_f1": 88.1, "texts": 120, "labels": [name for name, _ in answers]}
    return Trace(
        source,
        side("excuse", ["excuse"], end=False),
        [AttentionWeights("pool", weights)],
        [Step(0.874, answers[1:])],
        [Candidate(name, share, float(np.log(share))) for name, share in answers],
        {
            "data": {"name": "notes.tsv", "train_pairs": 2400, "dev_pairs": 120},
            "scores": scores | {"confusion": counts},
        },
    )


def moments(count: int = 12) -> list[Moment]:
    """From looking everywhere to looking where it should, two sentences at a time."""
    result = []
    for number in range(count):
        done = number / max(count - 1, 1)
        loss, score = 6.5 * np.exp(-3 * done) + 1.1, 72 * (1 - np.exp(-3.5 * done))
        loss, score = loss + 0.2 * np.sin(5 * number), score + 1.5 * np.cos(4 * number)
        traces = [marathi(5 * done), many_heads(1 + (done > 2), 1)]
        result.append(Moment(250 * (number + 1), 0.8 * (number + 1), float(loss), float(score), traces))
    return result
