"""The order of positions that a term of a pattern has on a GPU."""

from itertools import product

import pytest
import torch

from regard.core.kernels.gpu.arrangement import arrangements_of
from regard.core.pattern_text import parse


@pytest.mark.parametrize("text", ["window(3)", "strided(7)", "window(2) | strided(4) | dilated(2, 5)"])
@pytest.mark.parametrize(("queries", "keys", "position"), list(product([0, 9, 30], [0, 7, 33], [0, 10])))
def test_the_sizes_are_those_of_the_sorted_states(text: str, queries: int, keys: int, position: int) -> None:
    cpu = torch.device("cpu")
    for each in arrangements_of(parse(text), queries, keys, position):
        assert each.sizes == (len(each.query_positions(cpu)), len(each.key_positions(cpu)))
