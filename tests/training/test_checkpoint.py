"""What resuming needs comes back exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from regard.runtime.tensor_file import open_tensors
from regard.training import checkpoint
from regard.training.checkpoint import FILE, Progress
from regard.training.plan import Schedule


class Tied(nn.Module):
    """A parameter under two names, as in a model whose output layer is its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(3, 4, bias=False)
        self.second.weight = self.first.weight


def run(updates: int) -> tuple[Tied, dict[str, Tensor], torch.optim.Optimizer]:
    model = Tied()
    optimizer = torch.optim.Adam(model.parameters(), 0.01, betas=(0.9, 0.98), fused=True)
    for _ in range(updates):
        step(model, optimizer)
    average = {name: torch.randn_like(tensor) for name, tensor in model.named_parameters()}
    return model, average, optimizer


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    inputs = torch.randn(5, 3)
    optimizer.zero_grad()
    (model.first(inputs) * model.second(inputs)).square().sum().backward()  # type: ignore[operator]
    optimizer.step()


def test_everything_comes_back_bit_for_bit(tmp_path: Path) -> None:
    plan = Schedule(100, (50, 100), 7)
    progress = Progress(
        update=3,
        epoch=1,
        place=2,
        best=41.5,
        best_update=2,
        best_loss=3.5,
        lowest_loss=3.25,
        constant="all alike",
        warned=True,
        waited=1,
        last_validation=2,
        validations=5,
        seconds=12.25,
        plan=plan,
        log_bytes=77,
        baseline=-3.5,
        ended="the time is up",
    )
    model, average, optimizer = run(3)
    checkpoint.write(tmp_path / "training", model, average, optimizer, progress)
    drawn = torch.rand(9)
    step(model, optimizer)

    other, other_average, other_optimizer = run(0)
    torch.manual_seed(12345)
    result = checkpoint.read(tmp_path / "training", other, other_average, other_optimizer)
    assert result == progress and result.plan == plan
    assert all(average[name].equal(other_average[name]) for name in average)
    assert torch.rand(9).equal(drawn), "the random numbers go on where they stopped"
    step(other, other_optimizer)
    ours, theirs = optimizer.state_dict()["state"], other_optimizer.state_dict()["state"]
    assert ours.keys() == theirs.keys() and len(ours) == 2
    for number, moments in ours.items():
        assert all(value.equal(theirs[number][key]) for key, value in moments.items())
    assert all(a.equal(b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    assert other.second.weight is other.first.weight


def test_a_run_that_has_not_begun_comes_back(tmp_path: Path) -> None:
    model, average, optimizer = run(0)
    checkpoint.write(tmp_path / "training", model, average, optimizer, Progress())
    other, other_average, other_optimizer = run(2)
    result = checkpoint.read(tmp_path / "training", other, other_average, other_optimizer)
    assert result == Progress() and result.plan is None
    assert other_optimizer.state_dict()["state"] == {}
    assert all(a.equal(b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_nothing_is_left_beside_it(tmp_path: Path) -> None:
    for _ in range(2):
        checkpoint.write(tmp_path / "training", *run(1), Progress())
    assert [file.name for file in (tmp_path / "training").iterdir()] == [FILE]


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"nothing to resume: it has no training/{FILE}"):
        checkpoint.read(tmp_path / "training", *run(0))


@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "no progress", "other progress", "other tensors"])
def test_a_damaged_file_is_one_clear_error(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "training" / FILE
    checkpoint.write(file.parent, *run(1), Progress())
    whole = file.read_bytes()
    if damage == "no progress":
        save_file({"weights/first.weight": torch.zeros(4, 3)}, file)
    elif damage == "other progress":
        save_file({"weights/first.weight": torch.zeros(4, 3)}, file, {"progress": '{"updates": 3}'})
    elif damage == "other tensors":
        save_file({"weights/first.weight": torch.zeros(4, 3)}, file, {"progress": "{}"})
    else:
        file.write_bytes({"empty": b"", "cut": whole[: len(whole) // 2], "noise": b"\xff" * 200}[damage])
    with pytest.raises(ValueError, match="damaged") as error:
        checkpoint.read(file.parent, *run(0))
    assert FILE in str(error.value) and "\n" not in str(error.value)


def changed(file: Path, **changes: torch.Tensor) -> None:
    """Write the checkpoint again with other tensors."""
    with open_tensors(file) as tensors:
        saved, notes = tensors.read_all(), dict(tensors.metadata)
    save_file(saved | changes, file, notes)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("weights/first.weight", torch.zeros(1)),  # which torch would broadcast
        ("average/first.weight", torch.zeros(4, 1)),
        ("weights/first.weight", torch.zeros(4, 3, dtype=torch.int64)),
        ("optimizer/0/exp_avg", torch.zeros(7)),
        ("optimizer/900/exp_avg", torch.zeros(7)),
        ("optimizer/x", torch.zeros(7)),
        ("random/cpu", torch.zeros(9, dtype=torch.uint8)),
    ],
)
def test_a_tensor_of_another_shape_is_refused(name: str, tensor: torch.Tensor, tmp_path: Path) -> None:
    checkpoint.write(tmp_path, *run(1), Progress())
    changed(tmp_path / FILE, **{name: tensor})
    with pytest.raises(ValueError, match="damaged"):
        checkpoint.read(tmp_path, *run(0))


@pytest.mark.parametrize(
    "change",
    [
        {"update": "3"},
        {"update": -3},
        {"epoch": True},
        {"best": None},
        {"ended": 3},
        {"plan": {"updates": "x", "validations": [], "warmup": 1}},
        {"scores": [["x", 1.0, None]]},
        {"scores": 3},
        {"more": 1},
    ],
)
def test_a_progress_of_other_types_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    checkpoint.write(tmp_path, *run(1), Progress())
    with open_tensors(tmp_path / FILE) as tensors:
        saved = tensors.read_all()
    progress = json.loads(Progress().to_json()) | change
    save_file(saved, tmp_path / FILE, {"progress": json.dumps(progress)})
    with pytest.raises(ValueError, match="damaged"):
        checkpoint.read(tmp_path, *run(0))
