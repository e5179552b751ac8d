"""The recurrent translator against itself written out, one sentence and one step at a time."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy

from regard.models.recurrent import decoder_path
from regard.models.recurrent.model import Recurrent, RecurrentOptions
from tests.models.plain import VOCABULARY, Data, data, options, spread, translated

some = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**31)


def made(chosen: RecurrentOptions, seed: int = 0) -> Recurrent:
    torch.manual_seed(seed)
    return spread(Recurrent(chosen, VOCABULARY, VOCABULARY)).double().eval()


def gradients(model: Recurrent, loss: Tensor) -> dict[str, Tensor]:
    named = dict(model.named_parameters())
    result = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {
        name: torch.zeros_like(parameter) if gradient is None else gradient
        for (name, parameter), gradient in zip(named.items(), result, strict=True)
    }


def same_gradients(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-8)


@some
@given(options(), seeds)
def test_outputs_weights_and_gradients_are_those_written_out(chosen: RecurrentOptions, seed: int) -> None:
    model, batch = made(chosen, seed), data()
    result = model(batch.source, batch.lengths, batch.target, weights=True)
    assert result.weights is not None
    seed_of_loss = torch.randn_like(result.output)
    expected_loss = torch.zeros((), dtype=torch.float64)
    for row, (n, t) in enumerate(zip(batch.lengths.tolist(), batch.targets, strict=True)):
        output, weights = translated(model, batch.source[row, :n], batch.target[row, :t])
        torch.testing.assert_close(result.output[row, :t], output)
        torch.testing.assert_close(result.weights[row, :t, :n], weights)
        assert (result.weights[row, :t, n:] == 0).all()
        expected_loss = expected_loss + (output * seed_of_loss[row, :t]).sum()
    loss = (result.output * seed_of_loss * batch.real[..., None]).sum()
    same_gradients(gradients(model, loss), gradients(model, expected_loss))


@some
@given(options(), seeds)
def test_a_sentence_alone_is_as_in_a_batch(chosen: RecurrentOptions, seed: int) -> None:
    model, batch = made(chosen, seed), data()
    whole = model(batch.source, batch.lengths, batch.target, weights=True)
    factors = torch.randn_like(whole.output)
    total = {name: torch.zeros_like(parameter) for name, parameter in model.named_parameters()}
    for row in range(3):
        one = batch.alone(row)
        alone = model(one.source, one.lengths, one.target, weights=True)
        t, n = alone.weights.shape[1:]
        torch.testing.assert_close(alone.output[0], whole.output[row, :t])
        torch.testing.assert_close(alone.weights[0], whole.weights[row, :t, :n])
        for name, gradient in gradients(model, (alone.output[0] * factors[row, :t]).sum()).items():
            total[name] += gradient
    same_gradients(gradients(model, (whole.output * factors * batch.real[..., None]).sum()), total)


@some
@given(options(), seeds)
def test_steps_of_search_are_those_of_training(chosen: RecurrentOptions, seed: int) -> None:
    model, batch = made(chosen, seed), data()
    whole = model(batch.source, batch.lengths, batch.target, weights=True)
    logits = model.logits(whole.output)
    with torch.no_grad():
        state = model.start(batch.source, batch.lengths)
        for t in range(batch.target.shape[1]):
            result, weights, state = model.step(state, batch.target[:, t : t + 1])
            real = batch.real[:, t]
            torch.testing.assert_close(result[real, 0], logits[real, t])
            torch.testing.assert_close(weights[real, 0, 0, 0], whole.weights[real, t])


@some
@given(options(input_feeding=False), seeds)
def test_step_by_step_is_all_at_once(chosen: RecurrentOptions, seed: int) -> None:
    """A chance of sampling that never comes true takes the steps one by one."""
    model, batch = made(chosen, seed), data()
    once = model(batch.source, batch.lengths, batch.target, weights=True)
    steps = model(batch.source, batch.lengths, batch.target, sampling=1e-12, weights=True)
    torch.testing.assert_close(steps.output, once.output)
    torch.testing.assert_close(steps.weights, once.weights)
    if once.log_probability is not None:
        torch.testing.assert_close(steps.log_probability, once.log_probability)
    factors = torch.randn_like(once.output)
    same_gradients(gradients(model, (steps.output * factors).sum()), gradients(model, (once.output * factors).sum()))


def test_hypotheses_are_selected_and_sentences_kept() -> None:
    model, batch = made(RecurrentOptions(embedding=4, encoder=3, decoder=6, attention=7, dropout=0)), data()
    parents, remaining = torch.tensor([[0, 0], [0, 0], [0, 0]]), torch.tensor([2, 0])
    tokens = torch.tensor([[4, 5], [6, 7], [8, 9]])
    with torch.no_grad():
        begun = model.step(model.start(batch.source, batch.lengths), batch.target[:, :1])[2]
        _, _, state = model.step(begun.select(parents), tokens)
        swapped = state.select(torch.tensor([[1, 0]] * 3)).keep(remaining)
        result, weights, _ = model.step(swapped, torch.full((2, 2), 3))
        for place, row in enumerate(remaining.tolist()):
            n = int(batch.lengths[row])
            for slot, before in enumerate(tokens[row].flip(0).tolist()):
                target = torch.tensor([batch.target[row, 0].item(), before, 3])
                output, expected = translated(model, batch.source[row, :n], target)
                torch.testing.assert_close(result[place, slot], model.logits(output[-1]))
                torch.testing.assert_close(weights[place, slot, 0, 0, :n], expected[-1])


def _loss(model: Recurrent, batch: Data, sampling: float = 0.0) -> Tensor:
    result = model(batch.source, batch.lengths, batch.target, sampling=sampling)
    expected = torch.cat([batch.target[:, 1:], torch.zeros_like(batch.target[:, :1])], 1)
    loss = cross_entropy(model.logits(result.output).flatten(0, 1), expected.flatten(), ignore_index=0)
    if result.log_probability is not None and model.options.estimator == "reinforce":
        loss = loss - result.log_probability[batch.real].mean()
    return loss


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(options(dropout=0.3), seeds, st.sampled_from([0.0, 0.0, 0.5, 1.0]))
def test_everything_that_can_be_chosen_trains(chosen: RecurrentOptions, seed: int, sampling: float) -> None:
    torch.manual_seed(seed)
    model, batch = Recurrent(chosen, VOCABULARY, VOCABULARY), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    _loss(model, batch, sampling).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
    optimizer.step()
    assert torch.isfinite(_loss(model, batch))
    assert any(not torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


@pytest.mark.parametrize("order", ["luong", "bahdanau"])
@pytest.mark.parametrize("score", ["additive", "general", "scaled_dot", "cosine"])
@pytest.mark.parametrize("feeding", [False, True])
def test_every_parameter_learns(order: str, score: str, feeding: bool) -> None:
    chosen = RecurrentOptions(
        embedding=4, encoder=3, decoder=6, decoder_layers=2, attention=7, dropout=0, predictive=2,
        order=order, score=score, input_feeding=feeding,
    )  # fmt: skip
    model = made(chosen)
    _loss(model, data()).backward()
    assert all((parameter.grad != 0).any() for parameter in model.parameters())


def test_one_small_batch_is_learned_by_heart() -> None:
    model, batch = Recurrent(RecurrentOptions(embedding=8, encoder=8, decoder=16, attention=8), 11, 11), data()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    first = _loss(model.eval(), batch).item()
    model.train()
    for _ in range(60):
        optimizer.zero_grad()
        _loss(model, batch).backward()
        optimizer.step()
    assert _loss(model.eval(), batch).item() < 0.1 * first


@some
@given(options(), seeds)
def test_sampling_all_the_time_feeds_its_own_words(chosen: RecurrentOptions, seed: int) -> None:
    model, batch = made(chosen, seed), data(targets=(6, 6, 6))
    result = model(batch.source, batch.lengths, batch.target, sampling=1.0, weights=True)
    for row, n in enumerate(batch.lengths.tolist()):
        output, weights = translated(model, batch.source[row, :n], batch.target[row], own=True)
        torch.testing.assert_close(result.output[row], output)
        torch.testing.assert_close(result.weights[row, :, :n], weights)


def test_sampling_now_and_then_is_in_between() -> None:
    model, batch = made(RecurrentOptions(embedding=4, encoder=3, decoder=6, attention=7, dropout=0)), data()
    given_, own = (
        model(batch.source, batch.lengths, batch.target, sampling=fraction).output for fraction in (0.0, 1.0)
    )
    assert not torch.allclose(given_, own)
    torch.manual_seed(1)
    one = model(batch.source, batch.lengths, batch.target, sampling=0.5).output
    torch.manual_seed(1)
    assert torch.equal(one, model(batch.source, batch.lengths, batch.target, sampling=0.5).output)
    assert not torch.equal(one, model(batch.source, batch.lengths, batch.target, sampling=0.5).output)
    torch.testing.assert_close(one[:, 0], given_[:, 0])  # the start token is never replaced


def test_dropout_acts_in_training_only() -> None:
    model, batch = Recurrent(RecurrentOptions(embedding=4, encoder=3, decoder=6, dropout=0.5), 11, 11), data()
    arguments = batch.source, batch.lengths, batch.target
    assert not torch.equal(model(*arguments).output, model(*arguments).output)
    model.eval()
    assert torch.equal(model(*arguments).output, model(*arguments).output)


def test_weights_are_given_only_when_asked_for() -> None:
    batch = data()
    for feeding in (False, True):
        model = made(RecurrentOptions(embedding=4, encoder=3, decoder=6, attention=7, input_feeding=feeding))
        result = model(batch.source, batch.lengths, batch.target)
        assert result.weights is None and result.log_probability is None
        asked = model(batch.source, batch.lengths, batch.target, weights=True)
        assert torch.equal(asked.output, result.output)
        torch.testing.assert_close(asked.weights.sum(-1), torch.ones(3, 6, dtype=torch.float64))


def test_ties_are_one_tensor() -> None:
    small = {"embedding": 4, "encoder": 3, "decoder": 6, "attention": 7}
    none, target, both = (Recurrent(RecurrentOptions(**small, tie=tie), 11, 11) for tie in ("none", "target", "all"))
    assert none.output.weight is not none.embedding.weight and none.output.weight.shape == (11, 6)
    assert (
        target.output.weight is target.embedding.weight and target.encoder.embedding.weight is not target.output.weight
    )
    assert both.output.weight is both.embedding.weight is both.encoder.embedding.weight
    counts = [sum(parameter.numel() for parameter in model.parameters()) for model in (none, target, both)]
    assert counts[1] - counts[2] == 11 * 4
    Recurrent(RecurrentOptions(**small, tie="target"), 9, 11)


def test_padding_is_embedded_as_0_from_the_start() -> None:
    for tie in ("none", "target", "all"):
        model = Recurrent(RecurrentOptions(embedding=4, encoder=3, decoder=6, tie=tie), 11, 11)
        assert (model.embedding.weight[0] == 0).all() and (model.encoder.embedding.weight[0] == 0).all()


@pytest.mark.parametrize("score", ["dot", "scaled_dot", "cosine"])
def test_unequal_widths_are_named(score: str) -> None:
    with pytest.raises(ValueError, match=rf"score: '{score}' needs a decoder as wide .* decoder = 5 and states of 6"):
        Recurrent(RecurrentOptions(embedding=4, encoder=3, decoder=5, score=score), 11, 11)


def test_impossible_options_are_named() -> None:
    with pytest.raises(ValueError, match="tie: 'all' needs one vocabulary for both sides, got 9 source and 11 target"):
        Recurrent(RecurrentOptions(embedding=4, encoder=3, decoder=6, tie="all"), 9, 11)
    with pytest.raises(ValueError, match="windw"):
        Recurrent(RecurrentOptions(embedding=4, encoder=3, decoder=6, pattern="windw(2)"), 11, 11)
    with pytest.raises(ValueError, match="dropout: expected a number in"):
        Recurrent(RecurrentOptions(embedding=4, encoder=3, decoder=6, dropout=1.0), 11, 11)


@pytest.mark.parametrize("order", ["luong", "bahdanau"])
def test_bfloat16_autocast_stays_near(order: str) -> None:
    model, batch = made(RecurrentOptions(embedding=8, encoder=8, decoder=16, attention=8, order=order)).float(), data()
    exact = model(batch.source, batch.lengths, batch.target, weights=True)
    with torch.autocast("cpu", torch.bfloat16):
        near = model(batch.source, batch.lengths, batch.target, weights=True)
    torch.testing.assert_close(near.output.float()[batch.real], exact.output[batch.real], rtol=0.1, atol=0.1)
    near.output.float().square().sum().backward()
    assert all(
        p.grad is None or (torch.isfinite(p.grad).all() and p.grad.dtype == torch.float32) for p in model.parameters()
    )


@pytest.mark.parametrize(("narrow", "near"), [(False, 1e-5), (True, 3e-2)], ids=["fp32", "bf16"])
def test_all_steps_as_one_function_are_the_steps(monkeypatch: pytest.MonkeyPatch, narrow: bool, near: float) -> None:
    """What a GPU runs, in Triton's interpreter; in bfloat16 the steps themselves stay in float32."""
    pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
    torch.manual_seed(0)
    model = Recurrent(RecurrentOptions(embedding=8, encoder=6, decoder=12, attention=10, dropout=0), 9, 11)
    source, lengths = torch.tensor([[5, 6, 7, 2], [4, 2, 0, 0]]), torch.tensor([4, 2])
    target = torch.tensor([[1, 4, 5], [1, 7, 8]])
    results = []
    for reason in ("not on a GPU", None):
        monkeypatch.setattr(decoder_path, "why_no_triton", lambda _, reason=reason: reason)
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            result = model(source, lengths, target, weights=True)
            loss = (model.logits(result.output).float() ** 2).mean()
        assert result.weights is not None
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        results.append([x.float() for x in (result.output, result.weights, *gradients)])
    torch.testing.assert_close(*results, atol=near, rtol=near)


def test_the_path_of_the_decoder_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_path, "why_no_triton", lambda _: None)
    states, path = torch.zeros(1, 1, 4), decoder_path.decoder_path
    assert path(RecurrentOptions(), states, 0.0) is decoder_path.DecoderPath.FUSED
    assert path(RecurrentOptions(), states.double(), 0.0) is decoder_path.DecoderPath.STEP_BY_STEP
    assert path(RecurrentOptions(), states, 0.1) is decoder_path.DecoderPath.STEP_BY_STEP
    assert path(RecurrentOptions(cell="lstm"), states, 0.0) is decoder_path.DecoderPath.STEP_BY_STEP
    assert path(RecurrentOptions(input_feeding=False), states, 0.0) is decoder_path.DecoderPath.ALL_AT_ONCE
    assert decoder_path.why_not_fused(RecurrentOptions()) is None
    assert decoder_path.why_not_fused(RecurrentOptions(cell="lstm")) == "it needs cell = 'gru', got 'lstm'"
