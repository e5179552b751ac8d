"""The checkpoint of a run, `training/last.safetensors`: weights, their moving average, the optimizer's moments, the
states of the random number generators of all processes, and the progress. The file is replaced atomically."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import UnionType
from typing import get_args, get_origin, get_type_hints

import torch
from torch import Tensor, nn

from regard.config import folder as folders
from regard.config.card import shown
from regard.runtime.tensor_file import open_tensors
from regard.training.open_ended import DevScore
from regard.training.plan import PlanStep, Schedule

FILE = "last.safetensors"


@dataclass
class Progress:
    """Where a run stands. All of it decides what comes next, so all of it is saved."""

    update: int = 0  # updates done
    epoch: int = 0
    place: int = 0  # batches of the epoch that are done
    best: float = -1.0  # the highest score on dev so far
    best_update: int = 0
    best_loss: float | None = None  # the loss on dev of the model with that score
    lowest_loss: float | None = None  # the lowest loss on dev so far
    constant: str = ""  # why the best model is no better than a constant answer; empty if it is better
    warned: bool = False  # whether the user was warned that nothing is learned yet
    waited: int = 0  # validations of the second half, since the best one, at which the loss on dev did not fall either
    last_validation: int = 0  # the update of the last validation
    validations: int = 0  # the number of validations so far
    seconds: float = 0.0  # time spent, resumed runs included
    plan: Schedule | None = None
    scores: list[DevScore] = field(default_factory=list)  # of all validations
    plan_steps: list[PlanStep] = field(default_factory=list)  # the plans so far of a run by the clock
    log_bytes: int = 0  # the size of the log when this was saved
    baseline: float | None = None  # the moving average of the reward, where hard attention is trained by REINFORCE
    ended: str = ""  # why the run ended; empty while it goes on
    batches_per_update: int = 1  # of all processes together
    launch: str = ""  # the `torchrun` that began the run (runtime/launch.py); empty: none did

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Progress:
        """Return the progress that `to_json` wrote; raise an error if a value is of another type."""
        tree = json.loads(text)
        if plan := tree["plan"]:
            tree["plan"] = Schedule(**plan | {"validations": tuple(plan["validations"])})
        tree["plan_steps"] = [PlanStep(*each) for each in tree.get("plan_steps", ())]
        tree["scores"] = [DevScore(*each) for each in tree["scores"]]
        progress = cls(**tree)
        for part in filter(None, (progress, progress.plan, *progress.scores)):
            _check_types(part)
        return progress


def random_state() -> dict[str, Tensor]:
    """Return the states of this process's random number generators."""
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else states


def write(
    path: Path,
    model: nn.Module,
    average: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    random_states: Sequence[dict[str, Tensor]] | None = None,
) -> None:
    """Write a checkpoint. `random_states` are those of all processes, by rank; None: there is only this one."""
    tensors: dict[str, Tensor] = {f"weights/{name}": tensor for name, tensor in model.named_parameters()}
    tensors |= {f"average/{name}": tensor for name, tensor in average.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{key}": value for key, value in moments.items()}
    for rank, states in enumerate([random_state()] if random_states is None else random_states):
        tensors |= {f"{_random_name(rank)}/{kind}": state for kind, state in states.items()}
    path.mkdir(exist_ok=True)
    # The optimizer's state may share storage with weights, which safetensors refuses.
    copies = {name: tensor.clone() for name, tensor in tensors.items()}
    folders.write_tensors(path / FILE, copies, {"progress": progress.to_json()})


def _random_name(rank: int) -> str:
    return f"random/{rank}" if rank else "random"


def read_progress(path: Path) -> Progress | None:
    """Return the progress of a checkpoint; None if there is no readable one."""
    try:
        with open_tensors(path / FILE) as tensors:
            return Progress.from_json(tensors.metadata["progress"])
    except Exception:  # a damaged file may cause any error
        return None


def read(
    path: Path, model: nn.Module, average: dict[str, Tensor], optimizer: torch.optim.Optimizer, rank: int = 0
) -> Progress:
    """Load a checkpoint into model, average, optimizer and random number generators; return its progress.

    The random number generators of a process that the checkpoint does not know stay as they are.
    """
    file = path / FILE
    if not file.is_file():
        raise ValueError(f"{path.parent}: nothing to resume: it has no {path.name}/{FILE}")
    try:
        with open_tensors(file) as tensors:
            progress = Progress.from_json(tensors.metadata["progress"])
            saved = tensors.read_all()
        _restore(saved, model, average, optimizer, _random_name(rank))
    except Exception as error:  # a damaged file may cause any error
        reason = str(error).removeprefix(f"{file}: damaged: ")
        raise ValueError(f"{file}: damaged: {reason}; without --resume, --overwrite begins anew") from None
    return progress


def _restore(
    saved: dict[str, Tensor],
    model: nn.Module,
    average: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    random_name: str,
) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(_of_shape(saved, f"weights/{name}", parameter))
        for name, tensor in average.items():
            tensor.copy_(_of_shape(saved, f"average/{name}", tensor))
    if random_name == _random_name(0) or f"{random_name}/cpu" in saved:
        torch.set_rng_state(saved[f"{random_name}/cpu"])
    if f"{random_name}/cuda" in saved and torch.cuda.is_available():
        torch.cuda.set_rng_state(saved[f"{random_name}/cuda"])
    state: dict[int, dict[str, Tensor]] = {}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for name, tensor in saved.items():
        if name.startswith("optimizer/"):
            _, number, key = name.split("/")
            moment = (
                tensor if key == "step" and tensor.numel() == 1 else _of_shape(saved, name, parameters[int(number)])
            )
            state.setdefault(int(number), {})[key] = moment
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _check_types(record: object) -> None:
    """Raise a ValueError if a number or text of a dataclass is of another type than it says."""
    for name, hint in get_type_hints(type(record)).items():
        if get_origin(hint) not in (None, UnionType):
            continue
        kinds, value = get_args(hint) or (hint,), getattr(record, name)
        allowed = (*kinds, int) if float in kinds else kinds
        if type(value) not in allowed or (kinds == (int,) and value < 0):
            raise ValueError(f"progress: {name}: expected {hint}, got {shown(value)}")


def _of_shape(saved: dict[str, Tensor], name: str, wanted: Tensor) -> Tensor:
    """Return a saved tensor; raise a ValueError unless it has the shape and dtype of another."""
    tensor = saved[name]
    if tensor.shape != wanted.shape or tensor.dtype is not wanted.dtype:
        raise ValueError(
            f"{name}: expected {wanted.dtype} {list(wanted.shape)}, got {tensor.dtype} {list(tensor.shape)}"
        )
    return tensor
