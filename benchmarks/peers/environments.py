"""The virtual environments of the peers, and how a peer is asked for a measurement.

    from peers.environments import measure
    measure("joeynmt", "train", "--folder", folder, "--updates", "100")["tokens_per_second"]

An environment is made on first use under benchmarks/.peers (about 1.3 GB each): torch first, if the peer uses it, of
the version that this project is measured with, then every other package pinned in NAME.txt, without looking at what
they ask for, so that nothing replaces that torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Literal

Peer = Literal["joeynmt", "opennmt", "ctranslate2", "eflomal"]

TORCH = "torch==2.13.0"
WITHOUT_TORCH = ("ctranslate2", "eflomal")
BENCHMARKS = Path(__file__).resolve().parent.parent
ENVIRONMENTS = BENCHMARKS / ".peers"


def environment(name: Peer) -> Path:
    """The python of the peer's environment, which is made if it is missing or was made from other pins."""
    requirements = BENCHMARKS / "peers" / f"{name}.txt"
    if not requirements.is_file():
        raise ValueError(f"name: no peer {name!r}; {requirements.name} is missing beside {Path(__file__).name}")
    python = ENVIRONMENTS / name / "bin" / "python"
    stamp = ENVIRONMENTS / name / "installed"
    first = [] if name in WITHOUT_TORCH else [TORCH]
    pins = "\n".join([*first, requirements.read_text(encoding="utf-8")])
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == pins:
        return python
    print(f"making the environment of {name} …", file=sys.stderr)
    ENVIRONMENTS.mkdir(exist_ok=True)
    (ENVIRONMENTS / ".gitignore").write_text("*\n", encoding="utf-8")
    venv.create(ENVIRONMENTS / name, clear=True, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if first:
        subprocess.run([*pip, *first], check=True, stdout=sys.stderr)
    subprocess.run([*pip, "--no-deps", "--requirement", str(requirements)], check=True, stdout=sys.stderr)
    stamp.write_text(pins, encoding="utf-8")
    return python


def measure(name: Peer, *arguments: str) -> dict[str, Any]:
    """What NAME_peer.py reports when its peer's python runs it with these arguments."""
    command = [str(environment(name)), "-m", f"peers.{name}_peer", *arguments]
    paths = {**os.environ, "PYTHONPATH": str(BENCHMARKS)}
    run = subprocess.run(command, env=paths, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{run.stderr[-4000:]}")
    report: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return report
