"""Evidence from a model that has learned something: what it finds is there."""

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.evidence.of_translation import altered, examined, forced, gradient, leave_one_out
from regard.look.trace import Trace
from tests.training.toy import PAIRS, RECIPES

SOURCE, TARGET = PAIRS[0]


@pytest.fixture(scope="module", params=RECIPES)
def translator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> regard.Translator:
    out: Path = tmp_path_factory.mktemp("evidence") / "model"
    settings = RECIPES[request.param]
    return regard.train(
        PAIRS, out, recipe=request.param, dev=PAIRS[:16], settings=settings, precision="fp32", device="cpu"
    )


@pytest.fixture(scope="module")
def trace(translator: regard.Translator) -> Trace:
    return translator.force_decode([SOURCE], [TARGET])[0]


def report(translator: regard.Translator, source: str) -> np.ndarray:
    """log p of each piece of the target."""
    (result,) = translator.force_decode([source], [TARGET])
    return np.log([step.probability for step in result.steps])


def test_leaving_a_word_out_costs_what_forced_decoding_says(translator: regard.Translator, trace: Trace) -> None:
    result = leave_one_out(translator, trace, translator.target_tokens(trace))
    words = SOURCE.rstrip(".").split()
    assert [word.text for word in trace.source.words] == [*words, ".", ""]
    for column in range(len(words)):
        without = " ".join(words[:column] + words[column + 1 :]) + "."
        if column == len(words) - 1:
            without = " ".join(words[:-1]) + " ."
        falls = report(translator, SOURCE) - report(translator, without)
        expected = [falls[[group == row for group in trace.target.groups]].sum() for row in range(len(result.values))]
        np.testing.assert_allclose(result.values[:, column], expected, atol=1e-3)
    assert not result.values[:, -1].any(), "the end token cannot be left out"


def test_gradients_are_those_of_a_small_change(translator: regard.Translator, trace: Trace) -> None:
    """d/dε log p with one word's embedding scaled by 1 + ε is gradient × input."""
    tokens = translator.target_tokens(trace)
    result = gradient(translator, trace, tokens)
    assert result.values.shape == (len(trace.target.words), len(trace.source.words)) and (result.values >= 0).all()
    piece = 0
    rows = [row for row, group in enumerate(trace.target.groups) if group == 0]

    def scaled(by: float) -> float:
        def hook(_: object, __: object, output: torch.Tensor) -> torch.Tensor:
            output = output.clone()
            output[:, piece] *= by
            return output

        handle = translator.model.encoder.embedding.register_forward_hook(hook)
        try:
            return float(report(translator, SOURCE)[rows].sum())
        finally:
            handle.remove()

    slope = (scaled(1.01) - scaled(0.99)) / 0.02
    alone = trace.source.groups.count(0) == 1
    if alone:
        assert result.values[0, 0] == pytest.approx(abs(slope), rel=0.05, abs=0.01)


def test_gradients_are_taken_without_cudnn_in_evaluation_mode(translator: regard.Translator, trace: Trace) -> None:
    seen = []

    def note(module: torch.nn.Module, *_: object) -> None:
        seen.append((torch.backends.cudnn.enabled, any(each.training for each in module.modules())))

    handle = translator.model.register_forward_pre_hook(note)
    try:
        gradient(translator, trace, translator.target_tokens(trace))
    finally:
        handle.remove()
    assert seen == [(False, False)] and torch.backends.cudnn.enabled


def test_uniform_attention_says_something_else(translator: regard.Translator, trace: Trace) -> None:
    plain, uniform, shuffled = altered(translator, trace, translator.target_tokens(trace))
    assert plain.name == "as it is"
    assert plain.log_probability == pytest.approx(trace.candidates[0].log_probability, abs=1e-4)
    assert plain.text == translator.translate(SOURCE, regard.tasks.translation.search_options.Search(1))
    assert uniform.log_probability < plain.log_probability - 1
    assert shuffled.log_probability < plain.log_probability - 1


def test_all_of_it_goes_into_the_trace_and_back(translator: regard.Translator, trace: Trace) -> None:
    result = examined(translator, trace)
    assert [each.name for each in result.evidence] == ["leave one out", "gradient"]
    assert all(-1 <= each.agreement <= 1 for each in result.evidence) and len(result.altered) == 3
    again = Trace.from_dict(result.as_dict())
    assert again.as_dict() == result.as_dict()
    assert translator.target_tokens(again) == translator.target_tokens(trace)


def test_forcing_one_step_changes_what_follows_alone(translator: regard.Translator, trace: Trace) -> None:
    """The words before the forced one stay; forcing what the model does anyway changes nothing."""
    words = [word.text for word in trace.target.words]
    for column in range(len(trace.source.words)):
        result = forced(translator, trace, column, 1)
        assert result.text.startswith(words[0])
        assert np.isfinite(result.log_probability)
    everywhere = forced(translator, trace, 0)
    probabilities = [forced(translator, trace, column, 0).log_probability for column in range(len(trace.source.words))]
    assert len(set(probabilities)) > 1, "it matters where the model is made to look"
    assert everywhere.name == f"attention to {trace.source.words[0].text}"
    with pytest.raises(ValueError, match="expected places among"):
        forced(translator, trace, 50, 0)


def test_forced_weights_are_those_of_the_attention(translator: regard.Translator, trace: Trace) -> None:
    """With all weight on a word of a single piece at every step, log p is that of a model with these weights."""
    from regard.evidence.of_translation import _WithChangedAttention
    from regard.search.force_decode import force_decode

    place = trace.source.groups.index(0)
    pieces = [index for index, group in enumerate(trace.source.groups) if group == 0]

    def on_first(weights: torch.Tensor) -> torch.Tensor:
        other = torch.zeros_like(weights)
        other[..., place : place + len(pieces)] = 1 / len(pieces)
        return other

    tokens = translator.target_tokens(trace)
    batch, lengths = translator.batch([translator.source_tokens(SOURCE)])
    model = _WithChangedAttention(translator.model, on_first)
    (decoding,) = force_decode(model, batch, lengths, [tokens])
    assert forced(translator, trace, 0).log_probability == pytest.approx(
        float(decoding.log_probabilities.sum()), abs=1e-4
    )
