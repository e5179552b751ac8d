"""The translation of one shard, which depends on nothing but its lines, its number, the models and the options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from regard.batch.manifest import TranslationOptions
from regard.tasks.registry import TRANSLATION, load_for
from regard.tasks.translation.answer import Answer
from regard.tasks.translation.output import answer_lines
from regard.tasks.translation.predictor import Translator
from regard.text.glossary import Glossary
from regard.text.keep import Keep

BATCH_TOKENS = 2048  # of the source: a batch of many short lines takes less time per line than one of 64
SLICE = 1024  # lines whose answers are in memory at once: each has its attention weights


@dataclass(frozen=True)
class TranslatedShard:
    """The output for each line of a shard, and its notices with the indices of their lines."""

    lines: list[str]
    notices: list[tuple[int, str]]


def load_translator(models: Sequence[Path], device: str | None, options: TranslationOptions) -> Translator:
    """Load a model, or an ensemble of several."""
    translator = TRANSLATION.ensemble(load_for(TRANSLATION, models[0], device, options.precision), models[1:])
    translator.batch_tokens = BATCH_TOKENS
    return translator


def translate_lines(
    translator: Translator, lines: Sequence[str], options: TranslationOptions, shard: int
) -> TranslatedShard:
    """Translate the lines of a shard: identical ones once, and those of similar length together."""
    if options.search.sample:
        torch.manual_seed(options.search.seed * 1_000_003 + shard)  # no shard depends on those before it
    distinct = sorted(set(lines), key=lambda line: (len(line), line))
    outputs: dict[str, tuple[str, Sequence[str]]] = {}  # line → (output, notices)
    for line, answer in zip(distinct, _answers(translator, distinct, options), strict=True):
        text = answer_lines(answer, options.as_json, options.search.n_best)
        outputs[line] = text, answer.notices
    notices = [(index, notice) for index, line in enumerate(lines) for notice in outputs[line][1]]
    return TranslatedShard([outputs[line][0] for line in lines], notices)


def _answers(translator: Translator, lines: Sequence[str], options: TranslationOptions) -> Iterator[Answer]:
    glossary = Glossary(options.glossary) if options.glossary else None
    keep = Keep.parse(*options.keep) if options.keep else None
    for first in range(0, len(lines), SLICE):
        slice_ = lines[first : first + SLICE]
        yield from translator.answers(slice_, options.search, options.prefix, glossary=glossary, keep=keep)
