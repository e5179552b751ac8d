"""The attention of a step in full: its numbers are those of the model, and other parts can replace its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.core.normalizers import Hard
from regard.evidence.attention_reads import Alteration, PausedDecoder, Place
from regard.models.ensemble import EnsembleModel
from regard.models.recurrent.model import Recurrent, RecurrentOptions
from regard.models.transformer.layers import AttentionOptions
from regard.models.transformer.model import Transformer, TransformerOptions
from regard.search.force_decode import force_decode

SOURCE, TARGET = [5, 6, 7, 8, 9, 2], [4, 5, 6, 2]
SMALL = {"embedding": 8, "encoder": 4, "decoder": 8, "attention": 6}


def recurrent(**options: Any) -> nn.Module:
    torch.manual_seed(0)
    return Recurrent(RecurrentOptions(**SMALL, **options), 12, 12).eval()


def transformer(**cross: Any) -> nn.Module:
    torch.manual_seed(0)
    sizes = {"width": 8, "heads": 2, "feedforward": 8, "encoder_layers": 1, "decoder_layers": 2}
    return Transformer(TransformerOptions(**sizes, cross=AttentionOptions(**cross)), 12, 12).eval()


KINDS = {
    "additive": lambda: recurrent(),
    "bahdanau": lambda: recurrent(order="bahdanau", normalizer="sparsemax"),
    "general": lambda: recurrent(score="general", normalizer="entmax15"),
    "cosine": lambda: recurrent(score="cosine", pattern="window(2)"),
    "predictive": lambda: recurrent(score="dot", predictive=2),
    "hard": lambda: recurrent(normalizer="hard"),
    "transformer": lambda: transformer(),
    "transformer, additive": lambda: transformer(score="additive", normalizer="sparsemax"),
    "transformer, general": lambda: transformer(score="general", pattern="per_head(full, window(1))"),
    "transformer, grouped": lambda: transformer(score="cosine", kv_heads=1),
    "ensemble": lambda: EnsembleModel([recurrent(), transformer()]),
}


@dataclass
class Subject:
    """As much of a translator as an observed step needs."""

    model: Any

    def batch(self, tokens: Any) -> tuple[Tensor, Tensor]:
        return torch.tensor(tokens), torch.tensor([len(row) for row in tokens])


@pytest.fixture(params=KINDS)
def subject(request: pytest.FixtureRequest) -> Subject:
    return Subject(KINDS[request.param]())


def test_the_numbers_fit_together_and_are_those_of_the_model(subject: Subject) -> None:
    (decoding,) = force_decode(subject.model, *subject.batch([SOURCE]), [TARGET])
    for step, token in enumerate(TARGET):
        observed = PausedDecoder(subject, SOURCE, TARGET[:step]).observe()  # type: ignore[arg-type]
        assert float(observed.log_probs[token]) == pytest.approx(float(decoding.log_probabilities[step]), abs=1e-5)
        if not isinstance(subject.model, EnsembleModel):  # whose members are side by side in the trace
            weights = torch.stack([read.weights for read in observed.reads])
            torch.testing.assert_close(weights, torch.tensor(decoding.weights[:, :, step]), atol=1e-5, rtol=0)
        for read in observed.reads:
            energies = read.energies.masked_fill(~read.allowed, -torch.inf)
            normalizer = read.request.normalizer
            if isinstance(normalizer, Hard):
                normalized = torch.nn.functional.one_hot(energies.argmax(-1), energies.shape[-1]).float()
            else:
                normalized = normalizer(energies)
            expected = normalized if read.gain is None else normalized * read.gain
            torch.testing.assert_close(read.weights, expected, atol=1e-5, rtol=0)
            context = (read.weights[:, None] @ read.values)[:, 0]
            torch.testing.assert_close(read.context, context, atol=1e-5, rtol=0)


def test_the_model_s_own_parts_change_nothing(subject: Subject) -> None:
    decoder = PausedDecoder(subject, SOURCE, TARGET[:2])  # type: ignore[arg-type]
    own, same = decoder.observe(), decoder.observe(Alteration())
    torch.testing.assert_close(same.log_probs, own.log_probs, atol=1e-5, rtol=0)


def test_other_parts_are_those_of_attention(subject: Subject) -> None:
    decoder = PausedDecoder(subject, SOURCE, TARGET[:2])  # type: ignore[arg-type]
    own = decoder.observe().reads[0]
    altered = decoder.observe(Alteration("cosine", "sparsemax", "window(1)", 0.25))
    terms = own.terms
    expected = regard.attention(
        terms.query, terms.key, own.request.value, score=regard.Cosine(4.0), normalizer="sparsemax",
        pattern="window(1)", position=2, weights=True,
    )  # fmt: skip
    read = altered.reads[0]
    assert expected.weights is not None
    torch.testing.assert_close(read.weights, expected.weights[0, :, 0], atol=1e-5, rtol=0)
    torch.testing.assert_close(read.context, expected.context[0, :, 0], atol=1e-5, rtol=0)
    assert read.allowed[0].tolist() == [False, True, True, True, False, False]
    assert read.threshold is not None
    clipped = (read.energies - read.threshold[:, None]).clamp_min(0).masked_fill(~read.allowed, 0)
    torch.testing.assert_close(clipped, read.weights, atol=1e-5, rtol=0)
    assert not torch.allclose(altered.log_probs, decoder.observe().log_probs, atol=1e-4)


def test_one_head_alone_is_altered() -> None:
    decoder = PausedDecoder(Subject(transformer()), SOURCE, TARGET[:2])  # type: ignore[arg-type]
    own = decoder.observe()
    flat = Alteration(temperature=100.0)
    one, every = decoder.observe(flat, Place(1, 0)), decoder.observe(flat)
    torch.testing.assert_close(one.reads[0].weights, own.reads[0].weights)  # the layer before it
    assert torch.allclose(one.reads[1].weights[0], torch.tensor(1 / len(SOURCE)), atol=0.02)
    differences = [(each.log_probs - own.log_probs).abs().max() for each in (one, every)]
    assert 0 < differences[0] != differences[1]


def test_entmax15_has_a_threshold() -> None:
    read = PausedDecoder(Subject(recurrent(normalizer="entmax15")), SOURCE, []).observe().reads[0]  # type: ignore[arg-type]
    assert read.threshold is not None
    torch.testing.assert_close((read.energies / 2 - read.threshold[:, None]).clamp_min(0) ** 2, read.weights)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"score": "additive"}, "score: expected one of 'dot', 'scaled_dot', 'cosine', got 'additive'"),
        ({"normalizer": "softest"}, "normalizer: expected one of"),
        ({"pattern": "windw(2)"}, "did you mean 'window'"),
        ({"temperature": 0.0}, "temperature: expected a number > 0, got 0.0"),
    ],
)
def test_parts_that_are_none(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Alteration(**parts)
