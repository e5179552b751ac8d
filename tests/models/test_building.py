"""Models of the recipe and weights of a stranger: sizes are checked before anything is allocated or built for long."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.models.building import ModelOptions, build, check, load_weights, without_memory
from regard.models.documents.classifier import ClassifierOptions
from regard.models.images.model import ImageOptions
from regard.models.recurrent.model import RecurrentOptions
from regard.models.transformer.model import TransformerOptions
from regard.runtime.tensor_file import open_tensors

SMALL = RecurrentOptions(embedding=8, encoder=4, decoder=8, attention=8, encoder_layers=2)
ATTENDS = TransformerOptions(width=8, heads=2, feedforward=8, encoder_layers=1, decoder_layers=1)


def saved(path: Path, options: Any = SMALL, **changes: Tensor | None) -> tuple[nn.Module, Path]:
    model = build(options, 20, 30)
    tensors = {name: tensor.detach().clone() for name, tensor in model.named_parameters()} | changes
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path)
    return model.eval(), path


def loaded(path: Path, options: Any = SMALL) -> nn.Module:
    with open_tensors(path) as weights:
        with without_memory(options):
            model = build(options, 20, 30)
        load_weights(model, weights)
    return model.eval()


@pytest.mark.parametrize("options", [SMALL, replace(SMALL, tie="none"), replace(SMALL, cell="lstm"), ATTENDS])
def test_a_model_without_memory_gets_all_its_weights(options: ModelOptions, tmp_path: Path) -> None:
    expected, path = saved(tmp_path / "w", options)
    model = loaded(path, options)
    assert model.state_dict().keys() == expected.state_dict().keys()
    assert all(model.state_dict()[name].equal(tensor) for name, tensor in expected.state_dict().items())
    assert [each.requires_grad for each in model.parameters()] == [each.requires_grad for each in expected.parameters()]
    batch = torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([3, 2]), torch.tensor([[1, 4, 5], [1, 6, 7]])
    assert model(*batch).output.equal(expected(*batch).output)


def test_tied_weights_stay_one(tmp_path: Path) -> None:
    model: Any = loaded(saved(tmp_path / "w", ATTENDS)[1], ATTENDS)
    assert model.output.weight is model.embedded.embedding.weight


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    _, path = saved(tmp_path / "w")
    before = torch.get_rng_state()
    loaded(path)
    assert torch.get_rng_state().equal(before)


def test_other_floating_point_numbers_are_converted(tmp_path: Path) -> None:
    model, path = saved(tmp_path / "w")
    save_file({name: tensor.detach().double() for name, tensor in model.named_parameters()}, path)
    assert all(tensor.dtype is torch.float32 for tensor in loaded(path).parameters())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"combine.bias": None}, "'combine.bias' is in one and not in the other"),
        ({"more": torch.zeros(1)}, "'more' is in one and not in the other"),
        ({"combine.bias": torch.zeros(9)}, r"combine.bias: expected \[8\] by the recipe, got \[9\]"),
        ({"combine.bias": torch.zeros(1, 8)}, r"combine.bias: expected \[8\] by the recipe, got \[1, 8\]"),
        ({"combine.bias": torch.zeros(8, dtype=torch.int64)}, "combine.bias: expected floating-point numbers"),
        ({"combine.bias": torch.full((8,), torch.nan)}, "combine.bias: expected finite numbers"),
        ({"combine.bias": torch.full((8,), -torch.inf)}, "combine.bias: expected finite numbers"),
    ],
)
def test_weights_that_do_not_fit_are_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    _, path = saved(tmp_path / "w", **changes)
    with pytest.raises(ValueError, match=message):
        loaded(path)


@pytest.mark.parametrize(
    "options",
    [
        replace(SMALL, encoder_layers=2**31 - 1),
        replace(SMALL, decoder_layers=10**6),
        replace(SMALL, attention=2**31 - 1),
        replace(ATTENDS, encoder_layers=2**31 - 1),
        replace(ATTENDS, width=2**30, heads=2**30),
        ClassifierOptions(states=" + ".join(["rnn"] * 5000)),
        ClassifierOptions(layers=2**31 - 1, states="rnn"),
        ImageOptions(layers=2**31 - 1),
        ImageOptions(patch=2**20, channels=2**24),
    ],
)
def test_sizes_beyond_all_models_are_refused_at_once(options: ModelOptions) -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"expected at most|can be built"):
        check(options)
    assert time.monotonic() - began < 3


def test_a_recipe_of_terabytes_is_refused_without_memory(tmp_path: Path) -> None:
    _, path = saved(tmp_path / "w")
    with pytest.raises(ValueError, match=r"expected \[3145728, 16\] by the recipe, got"):
        loaded(path, replace(SMALL, decoder=2**20, attention=2**20))
