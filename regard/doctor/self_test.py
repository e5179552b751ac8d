"""A self-test of a few seconds: attention against its reference, and a small translator trained, saved and loaded."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard import samples
from regard.core.attention import plan
from regard.core.block_patterns import Global
from regard.core.normalizers import Entmax15, Hard, Normalizer, Softmax, Sparsemax
from regard.core.patterns import Causal, Full, Pattern, Window
from regard.core.reference import reference
from regard.core.request import Request
from regard.core.result import Result
from regard.core.scores import Additive, Cosine, Dot, General, ScaledDot, Score
from regard.core.strided_patterns import Strided
from regard.doctor.facts import describe
from regard.runtime.precision import float32_products
from regard.tasks.registry import TRANSLATION, load_for
from regard.tasks.train import train
from regard.tasks.translation.predictor import Translator

FEATURES = 16
SIZES = (12, 136)  # queries and keys: kernels for few pairs and for many
STRIDE = 37  # combinations are taken in steps of this, so that those that fit into the time are of all sorts
ATTENTION_SECONDS = 2.5  # after which no further combination is begun, on each device
TOLERANCES = {"cpu": 1e-4, "cuda": 1e-3}  # the largest relative error that passes
PAIRS = 96  # of the sample, that the translator is trained on
SMALL: dict[str, Any] = {
    "model.embedding": 16,
    "model.encoder": 16,
    "model.decoder": 16,
    "model.attention": 16,
    "vocabulary.size": 200,
    "training.epochs": 1,
    "training.batch_sentences": 16,
    "training.validations": 1,
    "training.word_pairs": 0.0,
    "search.beam": 2,
}
SCORES: dict[str, Callable[[], Score]] = {
    "dot": Dot,
    "scaled dot": ScaledDot,
    "general": lambda: General(FEATURES, FEATURES),
    "cosine": Cosine,
    "additive": lambda: Additive(FEATURES, FEATURES, hidden=FEATURES),
}
NORMALIZERS: tuple[Normalizer, ...] = (Softmax(), Sparsemax(), Entmax15(), Hard())
PATTERNS: tuple[Pattern, ...] = (
    *(Full(), Causal(), Window(5), Strided(3)),
    *(Window(3) | Global([0]), Window(4) | Strided(16)),
)


class CheckResult(NamedTuple):
    name: str
    device: str
    passed: bool
    detail: str
    seconds: float


def self_test(devices: list[torch.device]) -> Iterator[CheckResult]:
    """Yield the result of each check on each device."""
    for device in devices:
        yield _timed("attention", device, attention_check)
        yield _timed("translator", device, translator_check)


def _timed(name: str, device: torch.device, check: Callable[[torch.device], tuple[bool, str]]) -> CheckResult:
    """Run a check; an error fails it."""
    began = time.monotonic()
    try:
        passed, detail = check(device)
    except Exception as error:  # of drivers, compilers and libraries: anything
        passed, detail = False, describe(error)
    return CheckResult(name, str(device), passed, detail, round(time.monotonic() - began, 2))


# Attention


def attention_check(device: torch.device, seconds: float = ATTENTION_SECONDS) -> tuple[bool, str]:
    """Compare contexts and gradients of all kinds of attention with the reference, as many as time allows."""
    combinations = list(product(SCORES, NORMALIZERS, PATTERNS, SIZES))
    began, done, kernels = time.monotonic(), 0, set()
    worst, where = 0.0, "none"
    for number in range(len(combinations)):
        score, normalizer, pattern, size = combinations[number * STRIDE % len(combinations)]
        kernel, error = compared(SCORES[score]().to(device), normalizer, pattern, size, device)
        kernels.add(kernel)
        done += 1
        if error > worst:
            worst, where = error, f"{score}, {normalizer}, {pattern} over {size} keys, by {kernel}"
        if time.monotonic() - began > seconds:
            break
    counts = f"{done} of {len(combinations)} combinations by {len(kernels)} kernels"
    passed = worst <= TOLERANCES[device.type]
    return passed, f"{counts}, largest error {worst:.1e}" + ("" if passed else f": {where}")


def compared(
    score: Score, normalizer: Normalizer, pattern: Pattern, size: int, device: torch.device
) -> tuple[str, float]:
    """Return the kernel that computes such attention, and its largest error in contexts and gradients."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(4, 2, 1, size, FEATURES, generator=generator).to(device)
    query, key, value = (x.clone().requires_grad_() for x in rows[:3])
    lengths = torch.tensor([size, 3 * size // 4], device=device)
    with float32_products(exact=True):
        chosen = plan(query, key, value, score=score, pattern=pattern, normalizer=normalizer, lengths=lengths)
        results = [
            _with_gradients(compute, chosen.request, (query, key, value), rows[3])
            for compute in (chosen.kernel.run, reference)
        ]
    return chosen.kernel.name, max(map(_error, *results))


def _with_gradients(
    compute: Callable[[Request], Result], request: Request, inputs: tuple[Tensor, ...], weights: Tensor
) -> list[Tensor]:
    """Return the context, and the gradients of its weighted sum for the inputs."""
    context = compute(request).context
    gradients = torch.autograd.grad((context * weights).sum(), inputs, retain_graph=True, allow_unused=True)
    zeros = (torch.zeros_like(x) for x in inputs)
    return [context.detach(), *(zero if x is None else x for x, zero in zip(gradients, zeros, strict=True))]


def _error(ours: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest number if that is above 1; infinite where one is NaN."""
    error = float((ours - expected).abs().max() / expected.abs().max().clamp(min=1))
    return math.inf if math.isnan(error) else error


# A translator


def translator_check(device: torch.device) -> tuple[bool, str]:
    """Train a small translator, load it again and translate; on a CPU train it twice and compare the weights."""
    pairs = sample_pairs(PAIRS)
    sources = [source for source, _ in pairs[:8]]
    with tempfile.TemporaryDirectory(prefix="regard-doctor-", ignore_cleanup_errors=True) as folder:
        out = Path(folder) / "first"
        trained = train(pairs, out, recipe="rnn", settings=SMALL, device=str(device))
        assert isinstance(trained, Translator)
        loaded = load_for(TRANSLATION, out, str(device))
        if trained.translate(sources) != loaded.translate(sources):
            return False, "a loaded model translates otherwise than the one that was saved"
        if trained.card["ended"] != "done":
            return False, f"training ended: {trained.card['ended']}"
        detail = f"{trained.card['parameters']:,} parameters trained, saved, loaded; {len(sources)} texts translated"
        if device.type != "cpu":
            return True, detail
        again = train(pairs, Path(folder) / "second", recipe="rnn", settings=SMALL, device=str(device))
    if again.card["weights_sha256"] != trained.card["weights_sha256"]:
        return False, "two trainings with the same seed have different weights"
    return True, f"{detail}; a second training is equal bit for bit"


def sample_pairs(count: int) -> list[tuple[str, str]]:
    """Return the first pairs of the English–Marathi sample."""
    lines = (samples.folder() / samples.TRAIN).read_text(encoding="utf-8").split("\n")[:count]
    return [(source, target) for source, target, *_ in (line.split("\t") for line in lines)]
