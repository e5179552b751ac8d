"""Steps that are played back, as they are on a GPU, though here without one: the same as one by one."""

import numpy as np
import pytest
import torch

from regard.models.transformer.layers import AttentionOptions
from regard.models.transformer.model import Transformer, TransformerOptions
from regard.search import beam as beams
from regard.search import graph_replay
from regard.search.beam import beam
from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit
from regard.search.stepwise import greedy
from tests.search.small import sources, translator


def transformer(**options: object) -> Transformer:
    torch.manual_seed(0)
    shape: dict[str, object] = {
        "width": 8,
        "heads": 2,
        "feedforward": 12,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "dropout": 0.0,
    }
    model = Transformer(TransformerOptions(**{**shape, **options}), 9, 30).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.7)
    return model


def same(mine: list[list[Hypothesis]], other: list[list[Hypothesis]]) -> None:
    for some, others in zip(mine, other, strict=True):
        assert [each.output_tokens for each in some] == [each.output_tokens for each in others]
        for one, two in zip(some, others, strict=True):
            assert one.score == pytest.approx(two.score, abs=1e-5) and one.finished == two.finished
            np.testing.assert_allclose(one.weights, two.weights, atol=1e-5)


class Counted:
    """How many steps were played."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps = 0
        call = graph_replay.ReplayedSteps.__call__

        def counted(played: graph_replay.ReplayedSteps, steps: int) -> list[tuple[np.ndarray, ...]]:
            self.steps += steps
            return call(played, steps)

        monkeypatch.setattr(graph_replay.ReplayedSteps, "__call__", counted)
        monkeypatch.setattr(graph_replay, "can_replay", lambda device: True)
        monkeypatch.setattr(graph_replay, "CHUNK", 2)
        monkeypatch.setattr(beams, "MAX_REPLAYED", 5)


MODELS = {
    "gru": lambda: translator(30, 1, 0, sharp=0.6),
    "lstm": lambda: translator(30, 1, 1, sharp=0.6),
    "two layers": lambda: translator(30, 1, 2, sharp=0.6),
    "transformer": transformer,
    "learned": lambda: transformer(positions="learned", longest=6),
    "none": lambda: transformer(positions="none", norm="post"),
    "cosine": lambda: transformer(decoder=AttentionOptions("cosine"), cross=AttentionOptions("cosine")),
    "additive": lambda: transformer(decoder=AttentionOptions("additive"), cross=AttentionOptions("general")),
    "few keys": lambda: transformer(
        decoder=AttentionOptions(kv_heads=1), cross=AttentionOptions(normalizer="sparsemax")
    ),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("width", [1, 4])
def test_the_same_as_one_by_one(monkeypatch: pytest.MonkeyPatch, name: str, width: int) -> None:
    model: DecoderModel = MODELS[name]()
    source, lengths = sources(5, 2, 9, 3, 12)
    limit = LengthLimit(1.5, 3, shortest=2)
    prefixes = [[], [4, 5], [7], [], []]
    expected = beam(model, source, lengths, limit, width=width, best=width)
    force_decoded = beam(model, source, lengths, limit, width=width, prefixes=prefixes)
    counted = Counted(monkeypatch)
    same(beam(model, source, lengths, limit, width=width, best=width), expected)
    assert counted.steps > 1
    same(beam(model, source, lengths, limit, width=width, prefixes=prefixes), force_decoded)


def test_greedy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    model = transformer()
    source, lengths = sources(5, 2, 9)
    expected = greedy(model, source, lengths, LengthLimit(1, 4))
    counted = Counted(monkeypatch)
    same([[each] for each in greedy(model, source, lengths, LengthLimit(1, 4))], [[each] for each in expected])
    assert counted.steps > 0


@pytest.mark.parametrize(
    ("options", "width"),
    [
        ({"positions": "alibi"}, 3),
        ({"positions": "rotary"}, 3),
        ({"decoder": AttentionOptions(pattern="window(2)")}, 3),
        ({"cross": AttentionOptions(pattern="window(2)")}, 3),
        ({}, 17),
    ],
)
def test_what_is_not_played(monkeypatch: pytest.MonkeyPatch, options: dict[str, object], width: int) -> None:
    """Where a step stands is part of what it computes, or too many hypotheses read at once."""
    model = transformer(**options)
    source, lengths = sources(5, 2, 9)
    expected = beam(model, source, lengths, LengthLimit(1, 4), width=width)
    counted = Counted(monkeypatch)
    same(beam(model, source, lengths, LengthLimit(1, 4), width=width), expected)
    assert counted.steps == 0


def test_what_cannot_be_recorded_is_taken_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    model = transformer()
    source, lengths = sources(5, 2, 9)
    expected = beam(model, source, lengths, LengthLimit(1, 4), width=3)

    def refuse(*_: object) -> None:
        raise RuntimeError("operation not permitted")

    monkeypatch.setattr(graph_replay, "can_replay", lambda device: True)
    monkeypatch.setattr(graph_replay, "ReplayedSteps", refuse)
    with pytest.warns(RuntimeWarning, match="cannot be captured: operation not permitted") as report:
        same(beam(model, source, lengths, LengthLimit(1, 4), width=3), expected)
    assert len(report) == 1


@pytest.mark.parametrize("plays", [False, True])
def test_a_model_that_has_diverged_still_says_something(monkeypatch: pytest.MonkeyPatch, plays: bool) -> None:
    model = translator(12)
    with torch.no_grad():
        model.output.bias.fill_(torch.nan)
    monkeypatch.setattr(graph_replay, "can_replay", lambda device: plays)
    source, lengths = sources(4, 2)
    assert len(greedy(model, source, lengths, LengthLimit(1, 3))) == 2
    assert [len(some) for some in beam(model, source, lengths, LengthLimit(1, 3), width=3)] == [1, 1]
