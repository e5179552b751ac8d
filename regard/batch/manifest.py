"""What a sharded translation began with: every process that works in its folder must have the same."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.batch.folder import MANIFEST, NAMES, ShardFolder
from regard.config import folder as model_folder
from regard.runtime.precision import Precision
from regard.runtime.version import __version__
from regard.tasks.registry import TRANSLATION, require_task
from regard.tasks.translation.search_options import Search
from regard.text.glossary import Entry

FORMAT = 1
SHARD_LINES = 2000
SAMPLED_BLOCKS, BLOCK_BYTES = 64, 1 << 16  # of the input, for its hash
MODEL_FILES = (
    *(model_folder.CARD, model_folder.RECIPE, model_folder.WEIGHTS),
    *("tokenizer.json", "source.json", "target.json"),
)


@dataclass(frozen=True)
class TranslationOptions:
    """What decides the lines of the output, besides input and models."""

    search: Search
    prefix: str = ""
    glossary: tuple[Entry, ...] = ()
    keep: tuple[str, ...] = ()  # what is not translated, as --keep names it
    as_json: bool = False
    precision: Precision = "auto"

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> TranslationOptions:
        entries = tuple(Entry(source, tuple(forms)) for source, forms in given["glossary"])
        search, keep = Search(**given["search"]), tuple(given["keep"])
        return cls(**given | {"search": search, "glossary": entries, "keep": keep})


@dataclass(frozen=True)
class Manifest:
    """The input, the models and the options of a sharded translation."""

    input: dict[str, Any]  # name, bytes, sha256 of sampled blocks
    models: list[dict[str, str]]  # name, sha256
    options: TranslationOptions
    shard_lines: int

    @classmethod
    def of(cls, file: Path, models: Sequence[Path], options: TranslationOptions, shard_lines: int | None) -> Manifest:
        """Return the manifest of a translation that is about to begin; raise a ValueError for what is no translator."""
        return cls(describe_input(file), describe_models(models), options, shard_lines or SHARD_LINES)

    def as_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": __version__, **asdict(self)}


def describe_input(file: Path) -> dict[str, Any]:
    """Return the name and size of a file, and a hash of 64 blocks spread over it: reading all would take hours."""
    if not file.exists():
        raise ValueError(f"{file}: expected a file, and there is none")
    if not file.is_file():
        raise ValueError(f"{file}: expected a file, got {'a folder' if file.is_dir() else 'a pipe or device'}")
    sha256, size = hashlib.sha256(), file.stat().st_size
    try:
        with file.open("rb") as stream:
            for block in range(SAMPLED_BLOCKS):
                stream.seek(max(0, size - BLOCK_BYTES) * block // (SAMPLED_BLOCKS - 1))
                sha256.update(stream.read(BLOCK_BYTES))
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror or error}") from None
    return {"name": file.name, "bytes": size, "sha256": sha256.hexdigest()}


def describe_models(folders: Sequence[Path]) -> list[dict[str, str]]:
    """Return the name and the hash of each model."""
    for folder in folders:
        require_task(TRANSLATION, folder)
    return [{"name": folder.name, "sha256": _model_hash(folder)} for folder in folders]


def _model_hash(folder: Path) -> str:
    sha256 = hashlib.sha256()
    for name in MODEL_FILES:
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                sha256.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return sha256.hexdigest()


def open_folder(root: Path, manifest: Manifest, keep_shard_lines: bool) -> tuple[ShardFolder, Manifest]:
    """Return the folder for a manifest, made if it is not there, and the manifest that is in it.

    Raise a ValueError if it began with another one. `keep_shard_lines`: shards may have another size there.
    """
    _check_root(root)
    folder = ShardFolder(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        content = json.dumps(manifest.as_dict(), ensure_ascii=False, indent=2)
        _write_new(root / MANIFEST, content.encode(errors="backslashreplace"))  # file names need not be valid UTF-8
    except OSError as error:
        raise ValueError(f"{root}: cannot be written: {error.strerror or error}") from None
    begun = read_manifest(folder)
    now = Manifest(**vars(manifest) | ({"shard_lines": begun.shard_lines} if keep_shard_lines else {}))
    _check_same(root, begun, now)
    return folder, begun


def read_manifest(folder: ShardFolder) -> Manifest:
    """Return the manifest of a folder; raise a ValueError if there is none."""
    path = folder.root / MANIFEST
    if not path.is_file():
        raise ValueError(f"{folder.root}: expected the folder of a sharded translation; it has no {MANIFEST}")
    try:
        content = json.loads(path.read_bytes())
        version = content.pop("format")
        if version != FORMAT:
            raise ValueError(f"{path}: written in format {version}; this version of regard reads format {FORMAT} alone")
        content.pop("version")
        return Manifest(**content | {"options": TranslationOptions.from_dict(content["options"])})
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError(f"{path}: damaged") from None


def check_models(folder: ShardFolder, models: Sequence[Path]) -> None:
    """Raise a ValueError unless these are the models that the folder began with."""
    begun = read_manifest(folder)
    if _hashes(begun.models) != _hashes(describe_models(models)):
        raise ValueError(_refusal(folder.root, "another model", _names(begun)))


def check_input(folder: ShardFolder, file: Path) -> None:
    """Raise a ValueError unless this is the input that the folder began with."""
    begun, now = read_manifest(folder).input, describe_input(file)
    if (begun["bytes"], begun["sha256"]) != (now["bytes"], now["sha256"]):
        raise ValueError(_refusal(folder.root, "another input", f"{begun['name']}, {begun['bytes']:,} bytes"))


def _check_root(root: Path) -> None:
    """Raise a ValueError if the folder has other things in it."""
    if root.exists() and not root.is_dir():
        raise ValueError(f"{root}: expected a folder for the shards, got a file")
    if root.is_dir() and not (root / MANIFEST).is_file():
        others = sorted(name for name in os.listdir(root) if not name.startswith(NAMES))
        if others:
            raise ValueError(f"{root}: expected a new folder, or one of the same translation; it has {others[0]!r}")


def _write_new(path: Path, content: bytes) -> None:
    """Write a file at once, unless it is there."""
    if path.is_file():
        return
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}.new")
    try:
        temporary.write_bytes(content)
        try:
            os.link(temporary, path)  # fails if it is there
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _check_same(root: Path, begun: Manifest, now: Manifest) -> None:
    """Raise a ValueError that says in what the manifests differ."""
    if (begun.input["bytes"], begun.input["sha256"]) != (now.input["bytes"], now.input["sha256"]):
        raise ValueError(_refusal(root, "another input", f"{begun.input['name']}, {begun.input['bytes']:,} bytes"))
    if _hashes(begun.models) != _hashes(now.models):
        raise ValueError(_refusal(root, "another model", _names(begun)))
    before, after = (_flat(each.options) | {"shard_lines": each.shard_lines} for each in (begun, now))
    for name, value in after.items():
        if before[name] != value and name == "glossary":
            raise ValueError(_refusal(root, "another glossary", f"{len(begun.options.glossary):,} terms"))
        if before[name] != value:
            raise ValueError(_refusal(root, "other options", f"{name} {before[name]!r}; now {value!r}"))


def _refusal(root: Path, difference: str, begun: str) -> str:
    return f"{root}: begun with {difference} ({begun}); expected the same, or another folder"


def _flat(options: TranslationOptions) -> dict[str, Any]:
    values = asdict(options)
    search: dict[str, Any] = values.pop("search")
    return search | values


def _hashes(models: Collection[dict[str, str]]) -> list[str]:
    return [model["sha256"] for model in models]


def _names(manifest: Manifest) -> str:
    return " + ".join(model["name"] for model in manifest.models)
