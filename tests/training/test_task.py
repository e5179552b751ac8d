"""What all tasks share."""

from __future__ import annotations

import pytest

from regard.training.task import evenly_spaced


@pytest.mark.parametrize(
    ("count", "most", "expected"),
    [
        (5, 9, [0, 1, 2, 3, 4]),
        (5, 5, [0, 1, 2, 3, 4]),
        (9, 3, [0, 4, 8]),
        (10, 4, [0, 3, 6, 9]),
        (7, 1, [0]),
        (0, 3, []),
    ],
)
def test_positions_are_spread_over_all_of_dev(count: int, most: int, expected: list[int]) -> None:
    assert evenly_spaced(count, most) == expected
