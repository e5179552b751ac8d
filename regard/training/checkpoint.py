"""What resuming needs, in one file that is replaced as a whole: weights, their average, the optimizer's moments, every
random number generator, and where the run stands. Written to `training/last.safetensors`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from regard.config import folder as folders
from regard.training.plan import Plan

FILE = "last.safetensors"


@dataclass
class Progress:
    """Where a run stands. All of it decides what comes next, so all of it is kept."""

    update: int = 0
    """updates done"""
    epoch: int = 0
    place: int = 0
    """batches of the epoch done"""
    best: float = -1.0
    """the highest score on dev so far"""
    best_update: int = 0
    best_loss: float | None = None
    """the loss on dev of the model with that score"""
    lowest_loss: float | None = None
    """the lowest loss on dev so far"""
    constant: str = ""
    """in which way the best model is no better than a constant answer"""
    warned: bool = False
    """whether it was said that nothing is learned yet"""
    waited: int = 0
    """validations since then, in the second half, at which the loss on dev did not fall either"""
    validated: int = 0
    """the update at which dev was last tried"""
    validations: int = 0
    """how often dev was tried"""
    seconds: float = 0.0
    """time spent, over all starts"""
    plan: dict[str, Any] | None = None
    log_bytes: int = 0
    baseline: float | None = None
    """the mean reward, where hard attention is trained by REINFORCE"""
    ended: str = ""
    """why the run ended; empty while it goes on"""

    @property
    def planned(self) -> Plan | None:
        return None if self.plan is None else Plan.from_dict(self.plan)


def write(
    path: Path, model: nn.Module, average: dict[str, Tensor], optimizer: torch.optim.Optimizer, progress: Progress
) -> None:
    tensors = {f"weights/{name}": tensor for name, tensor in _named(model).items()}
    tensors |= {f"average/{name}": tensor for name, tensor in average.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{key}": value for key, value in moments.items()}
    tensors["random/cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random/cuda"] = torch.cuda.get_rng_state()
    path.mkdir(exist_ok=True)
    # The parts of an optimizer's state may share storage with weights; safetensors wants each by itself.
    folders.write_tensors(
        path / FILE,
        {name: tensor.clone() for name, tensor in tensors.items()},
        {"progress": json.dumps(asdict(progress))},
    )


def read(path: Path, model: nn.Module, average: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> Progress:
    """Put everything back where it was."""
    file = path / FILE
    if not file.is_file():
        raise ValueError(f"{path.parent}: nothing to resume: it has no {path.name}/{FILE}")
    try:
        with safe_open(file, "pt") as tensors:
            progress = Progress(**json.loads(tensors.metadata()["progress"]))
            found = {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118, not a dict
        _put_back(found, model, average, optimizer)
    except Exception as error:  # safetensors has errors of its own, and what is damaged may be anything
        raise ValueError(f"{file}: damaged: {error}") from None
    return progress


def _put_back(
    found: dict[str, Tensor], model: nn.Module, average: dict[str, Tensor], optimizer: torch.optim.Optimizer
) -> None:
    with torch.no_grad():
        for name, tensor in _named(model).items():
            tensor.copy_(found[f"weights/{name}"])
        for name, tensor in average.items():
            tensor.copy_(found[f"average/{name}"])
    _read_moments(found, optimizer)
    torch.set_rng_state(found["random/cpu"])
    if "random/cuda" in found and torch.cuda.is_available():
        torch.cuda.set_rng_state(found["random/cuda"])


def _read_moments(found: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in found.items():
        if name.startswith("optimizer/"):
            _, number, key = name.split("/")
            state.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _named(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once, tied ones under their first name."""
    return dict(model.named_parameters())
