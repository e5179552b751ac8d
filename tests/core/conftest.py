"""Small tiles, so that small inputs exercise what large ones do."""

from collections.abc import Iterator

import pytest

from regard.core.kernels import dense
from regard.core.kernels.cpu import energies, parts, tile_access
from regard.runtime.caches import clear_caches


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tiles of 4 queries, a few pairs at a time, and no pattern so small that the dense kernel takes it."""
    clear_caches()
    monkeypatch.setattr(parts, "TILE_ROWS", 4)
    monkeypatch.setattr(tile_access, "_MAX_PAIRS", 64)
    monkeypatch.setattr(tile_access, "_MAX_SPANS", 2)
    monkeypatch.setattr(energies, "_MAX_ELEMENTS", 64)
    monkeypatch.setattr(dense, "_MAX_MASKED_PAIRS", 0)
    yield
    clear_caches()
