"""A memory reads what `attention` would, and its changes are new memories."""

import pytest
import torch
from torch import Tensor

from regard import Additive, Attention, Causal, Cosine, Full, General, Global, Hard, ScaledDot, Window


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


SCORES = [ScaledDot(), General(4, 6), Cosine(2.0, learned=True), Additive(4, 6, 5, bias=True)]


@pytest.fixture(params=range(4), ids=["scaled", "general", "cosine", "additive"])
def module(request: pytest.FixtureRequest) -> Attention:
    return Attention(SCORES[request.param], Window(3) | Global([0])).double()


def keys_for(module: Attention, *shape: int) -> Tensor:
    return states(*shape, module.score.expects()[1] or 4)


def test_a_step_at_a_time_is_all_at_once(module: Attention) -> None:
    query, key, value = states(3, 5, 4), keys_for(module, 3, 7), states(3, 7, 2)
    whole = module(query, key, value, lengths=[7, 2, 0], weights=True)
    memory = module.remember(key, value, lengths=[7, 2, 0])
    for t in range(5):
        step = memory.read(query[:, t : t + 1], position=t, weights=True)
        torch.testing.assert_close(step.context, whole.context[:, t : t + 1])
        torch.testing.assert_close(step.weights, whole.weights[:, t : t + 1])


def test_the_keys_are_projected_once() -> None:
    module = Attention(Additive(4, 6, 5)).double()
    memory = module.remember(states(2, 7, 6))
    assert memory.key.shape == (2, 7, 5) and memory.value.shape == (2, 7, 6)


def test_gradients_reach_the_parameters(module: Attention) -> None:
    query, key = states(3, 5, 4), keys_for(module, 3, 7)
    parameters = [*module.parameters(), key.requires_grad_()]
    direct = torch.autograd.grad(module(query, key).context.sum(), parameters)
    remembered = torch.autograd.grad(module.remember(key).read(query).context.sum(), parameters)
    torch.testing.assert_close(remembered, direct)


def test_padding_reaches_no_parameter(module: Attention) -> None:
    key = keys_for(module, 2, 7)
    key[0, 3:] = torch.nan
    out = module.remember(key.requires_grad_(), lengths=[3, 7]).read(states(2, 5, 4))
    out.context.sum().backward()
    assert key.grad is not None and (key.grad[0, 3:] == 0).all()
    assert torch.isfinite(out.context).all()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in module.parameters())


def test_select_and_repeat_serve_beams(module: Attention) -> None:
    query, key, lengths = states(3, 5, 4), keys_for(module, 3, 7), torch.tensor([7, 2, 4])
    whole = module(query, key, lengths=lengths).context
    memory = module.remember(key, lengths=lengths)
    rows = torch.tensor([2, 2, 0])
    torch.testing.assert_close(memory.select(rows).read(query[rows]).context, whole[rows])
    repeated = memory.repeat(2).read(query.repeat_interleave(2, 0)).context
    torch.testing.assert_close(repeated, whole.repeat_interleave(2, 0))
    torch.testing.assert_close(memory.read(query).context, whole)  # unchanged


@pytest.mark.parametrize("lengths", [None, [4, 0, 2]])
def test_append_is_a_cache(module: Attention, lengths: list[int] | None) -> None:
    module.pattern = Full()
    query, old, new = states(3, 5, 4), keys_for(module, 3, 4), keys_for(module, 3, 3)
    grown = module.remember(old, lengths=lengths).append(new[:, :1]).append(new[:, 1:])
    for row in range(3):
        real = old[row] if lengths is None else old[row, : lengths[row]]
        expected = module(query[row], torch.cat([real, new[row]])).context
        torch.testing.assert_close(grown.read(query).context[row], expected)


def test_causal_decoding_with_a_cache() -> None:
    module = Attention(pattern=Causal()).double()
    x = states(2, 6, 4)
    whole = module(x, x).context
    memory = module.remember(x[:, :0])
    for t in range(6):
        memory = memory.append(x[:, t : t + 1])
        torch.testing.assert_close(memory.read(x[:, t : t + 1], position=t).context, whole[:, t : t + 1])


def test_hard_samples_in_training() -> None:
    module = Attention(normalizer=Hard("gumbel"))
    memory = module.remember(torch.randn(200, 4) * 0.1)
    query = torch.randn(50, 4)
    assert not torch.equal(memory.read(query).chosen, memory.read(query).chosen)


def test_bad_input_is_named() -> None:
    module = Attention(Additive(4, 6, 5))
    with pytest.raises(ValueError, match="value: expected 7 positions like key, got 6"):
        module.remember(torch.zeros(7, 6), torch.zeros(6, 2))
    with pytest.raises(ValueError, match="key: expected 6 features"):
        module.remember(torch.zeros(7, 3))
    with pytest.raises(ValueError, match="lengths: expected 0 … 7"):
        module.remember(torch.zeros(2, 7, 6), lengths=[3, 9])
