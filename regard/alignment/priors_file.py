"""The file of what an aligner learned: one safetensors file, which holds arrays and JSON and is never executed.

    sources, targets               the words as a JSON list, in UTF-8 bytes
    source_counts, target_counts   float32 [V], [W]: how often each word occurs
    source_null, target_null       float32 [V], [W]: how often null generated it
    source_of, target_of           int32 [K]: the word pairs
    counts                         float32 [K]: their expected numbers of links
    forward_jumps, backward_jumps  float64 [2, kinds]: the sums of the M step of jumps

The metadata has `format`, a number: a file with another one is refused.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from regard.alignment.corpus import Floats, Ints, WordPairs
from regard.alignment.hmm import KINDS
from regard.alignment.priors import Priors
from regard.runtime.files import write_file

FORMAT = 1
KEY = "regard_alignment_priors"
DTYPES = {
    "sources": np.uint8,
    "targets": np.uint8,
    **dict.fromkeys(("source_counts", "target_counts", "source_null", "target_null", "counts"), np.float32),
    **dict.fromkeys(("source_of", "target_of"), np.int32),
    **dict.fromkeys(("forward_jumps", "backward_jumps"), np.float64),
}
Arrays = dict[str, NDArray[np.generic]]


def save_priors(priors: Priors, path: str | Path) -> None:
    """Write a file; an existing one is replaced when the new one is complete."""
    words = priors.words
    arrays = {
        "sources": _encoded(words.sources),
        "targets": _encoded(words.targets),
        "source_counts": words.source_counts,
        "target_counts": words.target_counts,
        "source_null": priors.source_null,
        "target_null": priors.target_null,
        "source_of": words.source_of,
        "target_of": words.target_of,
        "counts": priors.counts,
        "forward_jumps": priors.forward_jumps,
        "backward_jumps": priors.backward_jumps,
    }
    content = {name: np.ascontiguousarray(array, DTYPES[name]) for name, array in arrays.items()}
    write_file(path, save(content, {KEY: str(FORMAT)}))


def _encoded(words: object) -> NDArray[np.generic]:
    """Return the words as the bytes of JSON; a lone surrogate, which UTF-8 cannot express, stays an escape."""
    return np.frombuffer(json.dumps(list(words)).encode(), np.uint8)  # type: ignore[call-overload]


def load_priors(path: str | Path) -> Priors:
    """Read a file and check all of it: a ValueError says what is wrong."""
    arrays = _arrays(path)
    try:
        return _checked(arrays)
    except ValueError as error:
        raise ValueError(f"{path}: damaged priors: {error}") from None


def _arrays(path: str | Path) -> Arrays:
    """Return the arrays of a file of this format."""
    expected = "expected a file that `regard align --save` wrote"
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file; {expected}")
    try:
        with safe_open(path, "numpy") as file:
            version = (file.metadata() or {}).get(KEY)
            names = set(file.keys())
            if version == str(FORMAT) and names == set(DTYPES):
                return {name: file.get_tensor(name) for name in names}
    except Exception as error:  # safetensors raises its own errors for other and for damaged files
        raise ValueError(f"{path}: {expected}, got something else: {error}") from None
    if version is not None and version != str(FORMAT):
        raise ValueError(f"{path}: priors of format {version[:20]!r}; expected format {FORMAT}")
    raise ValueError(f"{path}: {expected}, got another safetensors file")


def _checked(arrays: Arrays) -> Priors:
    """Return the priors, after checks of every array."""
    for name, dtype in DTYPES.items():
        if arrays[name].dtype != dtype:
            raise ValueError(f"{name}: expected {np.dtype(dtype)}, got {arrays[name].dtype}")
    sources, targets = (_decoded(arrays[name], name) for name in ("sources", "targets"))
    shapes = {
        **dict.fromkeys(("source_counts", "source_null"), (len(sources),)),
        **dict.fromkeys(("target_counts", "target_null"), (len(targets),)),
        **dict.fromkeys(("source_of", "target_of", "counts"), (arrays["counts"].size,)),
        **dict.fromkeys(("forward_jumps", "backward_jumps"), (2, KINDS)),
    }
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name}: expected shape {shape}, got {arrays[name].shape}")
        if not (np.isfinite(arrays[name]).all() and (arrays[name] >= 0).all()):  # type: ignore[operator]
            raise ValueError(f"{name}: expected finite numbers of at least 0")
    for name, count in (("source_of", len(sources)), ("target_of", len(targets))):
        if arrays[name].size and int(arrays[name].max()) >= count:
            raise ValueError(f"{name}: expected ids below {count}, got {arrays[name].max()}")
    for name in ("forward_jumps", "backward_jumps"):
        if not (arrays[name] > 0).all():  # type: ignore[operator]
            raise ValueError(f"{name}: expected numbers above 0")
    return _priors(sources, targets, arrays)


def _priors(sources: list[str], targets: list[str], arrays: Arrays) -> Priors:
    numbers: dict[str, Floats] = {name: np.asarray(arrays[name], np.float64) for name in DTYPES if "_of" not in name}
    pairs: list[Ints] = [np.asarray(arrays[name], np.int64) for name in ("source_of", "target_of")]
    words = WordPairs(sources, targets, numbers["source_counts"], numbers["target_counts"], *pairs)
    rest = (numbers[name] for name in ("counts", "target_null", "source_null", "forward_jumps", "backward_jumps"))
    return Priors(words, *rest)


def _decoded(array: NDArray[np.generic], name: str) -> list[str]:
    """Return the distinct words of a JSON list."""
    try:
        words = json.loads(array.tobytes())
    except (ValueError, RecursionError):
        raise ValueError(f"{name}: expected a JSON list") from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{name}: expected a JSON list of words")
    if len(set(words)) != len(words):
        raise ValueError(f"{name}: expected distinct words")
    return words
