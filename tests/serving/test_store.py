"""The models of a server: when they are loaded, and when not."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.config import folder as folders
from regard.serving.compute import ComputeThread
from regard.serving.errors import RequestError
from regard.serving.store import ModelStore


@pytest.fixture
def copied(translator_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(translator_folder, tmp_path / "toy"))


def used(store: ModelStore, name: str = "toy") -> Any:
    """Return the predictor of a model."""
    return asyncio.run(store.get(name).call(lambda predictor: predictor))


def test_a_model_is_loaded_on_first_use_and_leaves_when_unused(translator_folder: Path) -> None:
    store = ModelStore([translator_folder], ComputeThread())
    assert not store.get("toy").is_loaded
    first = used(store)
    assert store.get("toy").is_loaded and used(store) is first
    assert store.unload_unused(60) == 0 and store.get("toy").is_loaded
    assert store.unload_unused(-1) == 1 and not store.get("toy").is_loaded
    assert used(store) is not first


def test_names_and_languages(translator_folder: Path, german_folder: Path) -> None:
    store = ModelStore([translator_folder, german_folder, translator_folder], ComputeThread())
    assert [model.name for model in store] == ["toy", "german", "toy-2"]
    assert store.languages == ["en", "mr", "de"]
    assert store.of_languages("en", "mr") is store.get("toy"), "of two models, the first"
    assert store.of_languages("mr", "en") is None
    with pytest.raises(RequestError, match="model: expected one for the task 'classify', and this server has none"):
        store.classifier(None)
    with pytest.raises(ValueError, match="expected the folder of a model"):
        store.add(translator_folder / "nothing")


def test_a_changed_model_is_loaded_again(copied: Path) -> None:
    store = ModelStore([copied], ComputeThread())
    first = used(store)
    card = folders.read_card(copied)
    folders.write_card(
        copied, {key: value for key, value in card.items() if key != "format"} | {"languages": ["en", "hi"]}
    )
    assert used(store) is not first and store.languages == ["en", "hi"]
    second = used(store)
    (copied / folders.WEIGHTS).write_bytes(b"broken")
    assert used(store) is second, "what cannot be loaded does not end what works"
    store.get("toy").unload()
    with pytest.raises(RequestError, match=r"model: toy cannot be loaded: toy/model\.safetensors: damaged") as error:
        used(store)
    assert error.value.status == 503
