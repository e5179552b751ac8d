"""Reads of one memory in every order of grad mode, inference mode and autocast: none depends on an earlier one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import permutations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard import Additive, Attention, Causal, Cosine, Dot, General, MultiHead, ScaledDot
from regard.core.kernels.few_queries import PreparedKeys
from regard.runtime.packed_product import PackedProduct

MODES = [(grad, narrow) for grad in ("grad", "no_grad", "inference") for narrow in (False, True)]
HEADS, DIM = 2, 6
MODULES: dict[str, Callable[[], nn.Module]] = {
    "dot": lambda: Attention(Dot()),
    "scaled dot": lambda: Attention(ScaledDot()),
    "general": lambda: Attention(General(DIM, DIM)),
    "cosine": lambda: Attention(Cosine(2.0, learned=True)),
    "additive": lambda: Attention(Additive(DIM, DIM, 5, bias=True)),
    "additive, projected before": lambda: Attention(Additive(None, None, DIM)),
    "additive with heads": lambda: Attention(Additive(DIM, DIM, 5, heads=HEADS)),
    "causal": lambda: Attention(Additive(DIM, DIM, 5), Causal()),
    "multi-head": lambda: MultiHead(DIM, HEADS, score="additive"),
    "rotary": lambda: MultiHead(DIM, 1, rotary=True, kv_heads=1),
}


@contextmanager
def mode(grad: str, narrow: bool) -> Iterator[None]:
    guard: Any = {"grad": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}[grad]
    with guard(), torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        yield


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("name", MODULES)
def test_every_order_of_modes(name: str, queries: int) -> None:
    module = MODULES[name]()
    key, value = (torch.randn(2, HEADS, 4, DIM, requires_grad=True) for _ in range(2))
    query = torch.randn(2, HEADS, queries, DIM, requires_grad=True)
    leaves = {"key": key, "value": value, "query": query, **dict(module.named_parameters())}

    def read(memory: Any, grad: str, narrow: bool) -> list[Tensor]:
        """The context and, where gradients are recorded, those of all leaves."""
        with mode(grad, narrow):
            context = memory.read(query, position=3).context
        if grad != "grad":
            return [context.clone()]
        grads = torch.autograd.grad(context.float().sin().sum(), list(leaves.values()), retain_graph=True)
        return [context, *grads]

    lengths = [4, 2]
    once = {each: read(module.remember(key, value, lengths), *each) for each in MODES}
    for order in permutations(MODES, 3):
        memory = module.remember(key, value, lengths)
        for each in order:
            torch.testing.assert_close(read(memory, *each), once[each], rtol=0, atol=0, msg=str((order, each)))


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("prepared", MODES, ids=str)
def test_keys_prepared_in_one_mode_are_read_in_every_other(prepared: tuple[str, bool], name: str) -> None:
    """Up to rounding: in its own mode a memory is read from what was prepared, in others from its keys."""
    module = MODULES[name]()
    key, query = torch.randn(2, HEADS, 4, DIM, requires_grad=True), torch.randn(2, HEADS, 1, DIM, requires_grad=True)
    expected = module.remember(key, key, [4, 2]).read(query, position=3).context
    with mode(*prepared):
        memory = module.remember(key, key, [4, 2])
    for each in MODES:
        if (prepared[0] == "inference") and each[0] == "grad":
            continue  # torch refuses: inference tensors cannot be saved for backward
        with mode(*each):
            context = memory.read(query, position=3).context
        close = {"rtol": 0.05, "atol": 0.05} if prepared[1] or each[1] else {"rtol": 1e-5, "atol": 1e-6}
        torch.testing.assert_close(context.float(), expected, **close)
        if prepared[0] == each[0] == "grad":
            exact, near = (torch.autograd.grad(x.float().sum(), key, retain_graph=True) for x in (expected, context))
            torch.testing.assert_close(near, exact, **{**close, "atol": 10 * close["atol"]})


def test_reads_share_what_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder reads the same memory at every step."""
    made = []
    of = PreparedKeys.of
    monkeypatch.setattr(PreparedKeys, "of", lambda *given: made.append(given) or of(*given))
    memory = Attention(Additive(DIM, DIM, 5)).remember(torch.randn(2, 4, DIM))
    for _ in range(3):
        memory.read(torch.randn(2, 1, DIM))
    assert len(made) == 1


@pytest.mark.parametrize("narrow", [False, True])
def test_a_product_made_without_gradients_gives_them(narrow: bool) -> None:
    layer = nn.Linear(16, 8)
    x = torch.randn(3, 16, requires_grad=True)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        product = PackedProduct.of(layer, relu=True)
    leaves = [x, layer.weight, layer.bias]
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        expected = torch.autograd.grad(torch.relu(layer(x)).float().sum(), leaves)
    torch.testing.assert_close(torch.autograd.grad(product(x).float().sum(), leaves), expected)
