"""The facts of a bug report: versions, the processor, GPUs, precision, caches, the environment.

Every section is a function of its own, because any of them may fail: a broken driver must not hide the versions.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from regard.runtime.caches import cache_report
from regard.runtime.machine import core_limit, cpu_model, memory, memory_limit
from regard.runtime.precision import cpu_has_bfloat16
from regard.runtime.processes import available_cores
from regard.runtime.version import __version__

REQUIRED = ("torch", "numpy", "tokenizers", "safetensors", "regex", "sacrebleu", "typer", "rich")
OPTIONAL = {
    "triton": "GPU kernels",
    "matplotlib": "pictures as .png and .pdf",
    "datasets": "data sets of Hugging Face",
    "ray": "work on several machines",
}
VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "KMP_AFFINITY", "GOMP_CPU_AFFINITY"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE"),
    *("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
    *("ATEN_CPU_CAPABILITY", "TRITON_INTERPRET", "TRITON_CACHE_DIR", "TOKENIZERS_PARALLELISM", "PYTHONHASHSEED"),
    *("PYTHONUTF8", "LC_ALL", "LANG"),
)
"""environment variables that can change results or speed; none of them holds a secret"""
DRIVER = Path("/proc/driver/nvidia/version")  # there if the driver is loaded
HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s:;,'\"]+")


def gather(sections: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return the facts of each section; of one that fails, its error in a line as `error`."""
    return {name: attempt(section) for name, section in sections.items()}


def attempt(section: Callable[[], Any]) -> Any:
    """Return what a function returns, or its error in a line."""
    try:
        return section()
    except Exception as error:  # of drivers and broken installations: anything
        return {"error": describe(error)}


def describe(error: BaseException) -> str:
    """Return an error in a line, without names of users."""
    return without_home(" ".join(f"{type(error).__name__}: {error}".split())[:300])


def without_home(text: str) -> str:
    """Return the text with home folders, whose names are those of users, as ~."""
    home = str(Path.home()) if "HOME" in os.environ or os.name == "nt" else ""
    text = text.replace(home, "~") if len(home) > 1 and home != "/root" else text
    return HOME.sub("~", text)


def versions() -> dict[str, str]:
    """Return the versions of the package, of Python and the system, and of what it requires."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    packages = {name: _version(name) or "missing" for name in REQUIRED}
    return {"regard": __version__, "python": platform.python_version(), "system": system, **packages}


def extras() -> dict[str, str]:
    """Return the versions of what is optional, or what is missing without it."""
    return {name: _version(name) or f"not installed: no {purpose}" for name, purpose in OPTIONAL.items()}


def _version(name: str) -> str | None:
    """Return the version of an installed package; None: it is not installed. A folder of that name is no package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def cpu() -> dict[str, Any]:
    """Return the processor, its instructions, and how many cores and threads there are."""
    limit = core_limit()
    return {
        "model": cpu_model(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "bfloat16": cpu_has_bfloat16(),
        "cores": os.cpu_count(),
        "available_cores": available_cores(),
        **({} if limit is None else {"container_cores": round(limit, 2)}),
        "threads": torch.get_num_threads(),
        "parallel": "OpenMP" if torch.backends.openmp.is_available() else "native threads",
        "mkl": torch.backends.mkl.is_available(),
        "onednn": torch.backends.mkldnn.is_available(),
    }


def memory_sizes() -> dict[str, float | str]:
    """Return the memory in GiB, in all, available, and as a container limits it."""
    sizes, limit = memory(), memory_limit()
    known = {} if sizes is None else {"total_gib": gib(sizes[0]), "available_gib": gib(sizes[1])}
    return {**known, **({} if limit is None else {"container_gib": gib(limit)})} or {"total_gib": "unknown"}


def gpus() -> list[dict[str, Any]]:
    """Return what torch says of each GPU."""
    if not torch.cuda.is_available():
        return []
    return [_gpu(torch.device("cuda", index)) for index in range(torch.cuda.device_count())]


def _gpu(device: torch.device) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    free, total = torch.cuda.mem_get_info(device)
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_gib": gib(total),
        "free_gib": gib(free),
        "multiprocessors": properties.multi_processor_count,
    }


def cuda() -> dict[str, Any]:
    """Return the versions of CUDA, and why there is no GPU if there is none."""
    facts: dict[str, Any] = {"built_with": torch.version.cuda or torch.version.hip or "none: a torch for CPUs"}
    if DRIVER.exists():
        numbers = re.search(r"Kernel Module\D*([\d.]+)", DRIVER.read_text(encoding="utf-8", errors="replace"))
        facts["driver"] = numbers[1] if numbers else "unknown"
    if not torch.cuda.is_available():
        return facts | {"gpus": why_no_gpu()}
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    facts |= {"gpus": torch.cuda.device_count(), "cudnn": torch.backends.cudnn.version()}
    facts |= {"nccl": torch.distributed.is_available() and torch.distributed.is_nccl_available()}
    # Triton compiles a small launcher for each kernel.
    return facts | {"c_compiler": "found" if compiler else "none: Triton needs one, such as gcc"}


def why_no_gpu() -> str:
    """Return why torch finds no GPU."""
    if torch.version.cuda is None and torch.version.hip is None:
        return "none: this torch was built without CUDA"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "none: CUDA_VISIBLE_DEVICES hides them"
    no_driver = sys.platform == "linux" and not DRIVER.exists()
    return "none: torch finds none" + ("; no NVIDIA driver is loaded" if no_driver else "")


def precision() -> dict[str, str]:
    """Return what `--precision auto` gives on each device."""
    on_cpu = "bf16" if cpu_has_bfloat16() else "fp32: the processor has no bfloat16 instructions"
    facts = {"cpu": on_cpu}
    if torch.cuda.is_available():
        facts["cuda"] = "fp32, with TF32 products in training"
    return facts


def caches() -> list[dict[str, Any]]:
    """Return the name, bound and entries of each cache."""
    return [{"name": each.name, "maxsize": each.maxsize, "entries": each.entries} for each in cache_report()]


def environment() -> dict[str, str]:
    """Return the environment variables that can change results or speed, those that are set."""
    return {name: without_home(os.environ[name]) for name in VARIABLES if name in os.environ}


def gib(size: int) -> float:
    """Return bytes as GiB."""
    return round(size / 2**30, 1)


SECTIONS: Mapping[str, Callable[[], Any]] = {
    "versions": versions,
    "optional": extras,
    "cpu": cpu,
    "memory": memory_sizes,
    "cuda": cuda,
    "gpus": gpus,
    "precision": precision,
    "environment": environment,
    "caches": caches,
}
