"""Every test starts from the same seed, on one thread: two workers share two cores. Hypothesis times nothing."""

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)
