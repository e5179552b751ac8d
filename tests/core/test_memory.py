"""A memory reads what `attention` would, and its changes are new memories."""

import pytest
import torch
from torch import Tensor

from regard import Additive, Attention, Causal, Cosine, Full, General, Global, Hard, ScaledDot, Score, Window


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
    plain = torch.autograd.grad(module(query, key).context.sum(), parameters)
    remembered = torch.autograd.grad(module.remember(key).read(query).context.sum(), parameters)
    torch.testing.assert_close(remembered, plain)


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


def test_queries_with_more_leading_dims_than_the_memory() -> None:
    """Lengths belong to the memory's dims, wherever they end up."""
    module = Attention().double()
    key = states(2, 6, 4)
    query = states(3, 2, 5, 4)
    out = module.remember(key, lengths=[6, 2]).read(query, weights=True)
    for row in range(3):
        torch.testing.assert_close(out.context[row], module(query[row], key, lengths=[6, 2]).context)


def test_rows_of_keys_and_values_that_broadcast() -> None:
    module = Attention().double()
    key, value, query = states(1, 6, 4), states(3, 6, 2), states(3, 5, 4)
    memory = module.remember(key, value)
    rows = [2, 0]
    whole = module(query, key, value).context
    torch.testing.assert_close(memory.select(rows).read(query[rows]).context, whole[rows])
    torch.testing.assert_close(
        memory.repeat(2).read(query.repeat_interleave(2, 0)).context, whole.repeat_interleave(2, 0)
    )


def test_a_score_of_ones_own_keeps_its_keys() -> None:
    class Halved(Score):
        def energies(self, query: Tensor, key: Tensor) -> Tensor:
            return query @ self.key_side(key).mT

        def key_side(self, key: Tensor) -> Tensor:
            return key / 2

    module = Attention(Halved())
    query, key = states(5, 4), states(6, 4)
    torch.testing.assert_close(module.remember(key).read(query).context, module(query, key).context)


def test_bad_input_is_named() -> None:
    module = Attention(Additive(4, 6, 5))
    with pytest.raises(ValueError, match="value: expected 7 positions like key, got 6"):
        module.remember(torch.zeros(7, 6), torch.zeros(6, 2))
    with pytest.raises(ValueError, match="key: expected 6 features"):
        module.remember(torch.zeros(7, 3))
    memory = module.remember(torch.zeros(2, 7, 6))
    with pytest.raises(ValueError, match=r"key: expected \[2, n, 5\] to append, got \[3, 1, 5\]"):
        memory.append(torch.zeros(3, 1, 6))
    with pytest.raises(ValueError, match=r"query: expected \[..., T, D\] with leading dims \[2\], got \[2, 4\]"):
        memory.read(torch.zeros(2, 4))
    with pytest.raises(ValueError, match="query: expected 4 features for Additive"):
        memory.read(torch.zeros(2, 1, 9))
    with pytest.raises(ValueError, match="memory: expected a leading dim"):
        module.remember(torch.zeros(7, 6)).repeat(3)
    with pytest.raises(ValueError, match="times: expected a whole number ≥ 1, got 0"):
        memory.repeat(0)
    with pytest.raises(ValueError, match="key, value: expected leading dims that broadcast"):
        module.remember(torch.zeros(2, 7, 6), torch.zeros(3, 7, 6))
    with pytest.raises(TypeError, match="key: expected a tensor, got list"):
        module.remember([1.0])
    with pytest.raises(ValueError, match="lengths: expected 0 … 7"):
        module.remember(torch.zeros(2, 7, 6), lengths=[3, 9])
