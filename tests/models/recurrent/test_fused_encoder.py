"""The encoder's steps as one function, in Triton's interpreter, against torch's own over packed sequences."""

import pytest
import torch

pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
from regard.models.recurrent.encoder import RecurrentEncoder


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("lengths", [[5, 5, 5], [5, 2, 4], [1, 1, 3]])
def test_as_torchs_own(bidirectional: bool, lengths: list[int]) -> None:
    module = RecurrentEncoder("gru", 11, 6, 12, 1, bidirectional, 0.0)
    exact = RecurrentEncoder("gru", 11, 6, 12, 1, bidirectional, 0.0).double()
    exact.load_state_dict(module.state_dict())
    real = torch.arange(6) < torch.tensor(lengths)[:, None]
    source = torch.randint(1, 11, real.shape) * real
    given = torch.randn(3, 6, 24 if bidirectional else 12)
    results = []
    for each, run in ((module, module._fused), (exact, exact._packed)):
        states, (last,) = run(each.embedding(source), torch.tensor(lengths))
        loss = (states * given).sum() + (last**2).sum()
        gradients = torch.autograd.grad(loss, list(each.parameters()))
        results.append([x.float() for x in (states, last, *gradients)])
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-4)


def test_what_can_be_recorded() -> None:
    """Only where there are kernels, so not here."""
    assert not RecurrentEncoder("gru", 11, 4, 3, 1, True, 0.0).can_capture(torch.device("cpu"))
