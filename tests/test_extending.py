"""docs/extending.md: examples that add files to the package run in a copy of it, changed as the page says.

test_docs.py runs the other examples; here the normalizer and the kernel are also checked for correctness.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard import Additive, Entmax, LocalPredictive, attention, plan
from regard.core.reference import reference
from regard.core.request import Request
from tests.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "extending.md"
MAX_CHANGED = 2
"""files of the package that an example may change, besides its own"""


def section(title: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def apply(diff: str, folder: Path) -> str:
    """Change a file as a diff without line numbers says, and return its name."""
    name = re.match(r"--- (\S+)\n", diff)
    assert name is not None, diff
    path = folder / name[1]
    text = path.read_text(encoding="utf-8")
    for hunk in diff.split("@@\n")[1:]:
        lines = hunk.splitlines(keepends=True)
        before, after = ("".join(line[1:] for line in lines if line[0] in f" {sign}") for sign in "-+")
        assert text.count(before) == 1, f"{name[1]} has {text.count(before)} times:\n{before}"
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
    return name[1]


def names_in(title: str) -> dict[str, Any]:
    """Run the Python blocks of a section and return the names that they define."""
    names: dict[str, Any] = {}
    for block in blocks(section(title)):
        if block.kind == "python":
            exec(compile(block.text, str(PAGE), "exec"), names)
    return names


@pytest.fixture
def normalizer() -> Entmax:
    return names_in("A normalizer")["ColdSparsemax"]()  # type: ignore[no-any-return]


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_the_gradient_of_the_normalizer_is_right(normalizer: Entmax) -> None:
    torch.manual_seed(0)
    energies = states(8, 6)
    weights = normalizer(energies)
    assert (weights == 0).any() and ((weights > 0).sum(-1) > 1).any(), "expected sparse rows with several keys"
    assert torch.autograd.gradcheck(normalizer, energies)
    assert torch.autograd.gradgradcheck(normalizer, energies)


def test_the_gradient_of_the_normalizer_is_right_on_tiles(normalizer: Entmax) -> None:
    torch.manual_seed(0)
    inputs = states(2, 7, 3), states(2, 7, 3), states(2, 7, 2)
    assert plan(*inputs, pattern="window(2)", normalizer=normalizer).kernel.name == "tiles"
    assert torch.autograd.gradcheck(
        lambda *each: attention(*each, pattern="window(2)", normalizer=normalizer).context, inputs
    )


def one_key_request(**options: Any) -> Request:
    """Return a request whose leading dims broadcast to [2, 3], with one key."""
    torch.manual_seed(0)
    return plan(states(2, 1, 3, 4), states(1, 4), states(3, 1, 5), **options).request


@pytest.mark.parametrize(
    "options",
    [
        *({"normalizer": name} for name in ("softmax", "sparsemax", "entmax15")),
        {"score": Additive(4, 4, 3).double()},
        {"position": 2},
    ],
)
def test_the_kernel_equals_the_reference(options: dict[str, Any]) -> None:
    kernel, request = names_in("A kernel")["OneKey"](), one_key_request(**options)
    assert kernel.refuse(request) is None
    contexts = kernel.run(request).context, reference(request).context
    torch.testing.assert_close(*contexts)
    assert contexts[0].data_ptr() != request.value.data_ptr()
    inputs, gradient = (request.query, request.key, request.value), torch.randn_like(contexts[0])
    torch.testing.assert_close(
        *(torch.autograd.grad(context, inputs, gradient, materialize_grads=True) for context in contexts)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"normalizer": "hard"},
        {"bias": torch.tensor([[-torch.inf]], dtype=torch.float64)},
        {"lengths": [0, 1]},
        {"allowed": torch.tensor([[True], [False], [True]])},
        {"pattern": LocalPredictive(4, 2).double()},
        {"pattern": "window(1)", "position": 5},
        {"dropout": 0.5},
    ],
)
def test_the_kernel_refuses_where_the_weight_is_not_one(options: dict[str, Any]) -> None:
    assert names_in("A kernel")["OneKey"]().refuse(one_key_request(**options)) is not None


def test_the_kernel_refuses_several_keys() -> None:
    assert names_in("A kernel")["OneKey"]().refuse(plan(states(3, 4), states(2, 4), states(2, 4)).request) is not None


@pytest.mark.parametrize("title", ["A task", "A model", "A view"])
def test_example_runs_in_a_changed_copy(title: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "regard", tmp_path / "regard", ignore=shutil.ignore_patterns("__pycache__"))
    changed, own, ran = set(), 0, 0
    for block in blocks(section(title)):
        file = re.match(r"# (regard/\S+\.py)\n", block.text)
        if block.kind == "diff":
            changed.add(apply(block.text, tmp_path))
        elif file:
            path = tmp_path / file[1]
            assert not path.exists(), "an example has files of its own"
            path.parent.mkdir(exist_ok=True)
            path.with_name("__init__.py").touch()
            path.write_text(block.text.partition("\n")[2], encoding="utf-8")
            own += 1
        elif block.kind == "python":
            assert block.output is not None
            (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
            environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
            command = [sys.executable, "example.py"]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=120)
            assert done.returncode == 0, done.stderr.decode()
            assert done.stdout.decode() == block.output
            ran += 1
    assert own and ran and 1 <= len(changed) <= MAX_CHANGED
