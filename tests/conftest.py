"""Every test starts from the same seed, on one thread: two workers share two cores.

Hypothesis times nothing, and draws the same examples in every run: a run fails for a change, not by chance.
`pytest --hypothesis-profile=searching` looks for new ones. Kernels for a GPU run in Triton's interpreter, except in
tests/gpu, which `make test-gpu` runs.
"""

import os

os.environ["TRITON_INTERPRET"] = "0" if "REGARD_TEST_GPU" in os.environ else "1"  # before anything imports Triton

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("searching", deadline=None, derandomize=False)
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
