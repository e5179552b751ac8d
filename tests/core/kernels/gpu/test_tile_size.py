"""Tiles fit into the shared memory of the GPU."""

import pytest
import torch

from regard.core.kernels.gpu.tile_size import stages, tile_width, warps

H200, RTX_4090 = 232_448, 101_376


@pytest.mark.parametrize(
    ("dtype", "features", "precision", "available", "count"),
    [
        (torch.float32, 128, "tf32x3", H200, 1),
        (torch.float32, 80, "tf32x3", H200, 1),  # as 128
        (torch.float32, 128, "tf32", H200, 3),
        (torch.float32, 64, "tf32x3", H200, 3),
        (torch.bfloat16, 128, "tf32x3", H200, 3),
        (torch.float32, 64, "tf32x3", RTX_4090, 1),
        (torch.float32, 128, "tf32", RTX_4090, 0),
    ],
)
def test_as_many_stages_as_fit_into_shared_memory(
    dtype: torch.dtype, features: int, precision: str, available: int, count: int
) -> None:
    assert stages(dtype, features, features, precision, available) == count


def test_no_tile_is_narrower_than_32() -> None:
    assert [tile_width(features) for features in (1, 16, 17, 33, 80, 128)] == [32, 32, 32, 64, 128, 128]


def test_wide_tiles_of_float32_take_more_warps() -> None:
    assert (warps(torch.float32, 80, 80), warps(torch.float32, 64, 64), warps(torch.bfloat16, 128, 128)) == (8, 4, 4)


def test_tiles_of_float32_with_noise_take_more_warps() -> None:
    assert (warps(torch.float32, 80, 80, True), warps(torch.float32, 64, 64, True)) == (8, 8)
    assert warps(torch.bfloat16, 128, 128, True) == 4
