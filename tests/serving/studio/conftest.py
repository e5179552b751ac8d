"""What tests of Compare, Corpus, Train and Classify share: more small models, and a server on all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import regard
from regard.serving.settings import ServerSettings
from tests.serving.live import running
from tests.serving.studio.comparison_folder import write_comparison
from tests.training import toy, toy_labels


@pytest.fixture(scope="session")
def transformer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a second translator, a Transformer. Not to be changed."""
    out = tmp_path_factory.mktemp("serving") / "attends"
    few = {"training.epochs": 2, "training.validations": 2}
    regard.train(toy.PAIRS, out, recipe="transformer", settings=toy.ATTENDS | few, languages=("en", "mr"), device="cpu")
    return out


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a classifier. Not to be changed."""
    out = tmp_path_factory.mktemp("serving") / "judge"
    regard.train(toy_labels.TEXTS, out, task="classify", settings=toy_labels.TINY, device="cpu")
    return out


@pytest.fixture(scope="session")
def work_settings(
    translator_folder: Path,
    transformer_folder: Path,
    classifier_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> ServerSettings:
    """The settings of a server with two translators, a classifier and a comparison of the translators."""
    folder = tmp_path_factory.mktemp("work")
    compared = write_comparison(folder / "compared", {"rnn": translator_folder, "attends": transformer_folder})
    models = [translator_folder, transformer_folder, classifier_folder]
    suggestions = folder / "suggestions.tsv"
    return ServerSettings(
        models, studio=True, suggestions=suggestions, comparisons=[compared], work=folder / "regard-studio"
    )


@pytest.fixture(scope="session")
def work_address(work_settings: ServerSettings) -> Iterator[str]:
    """The address of a server with the page, several models and a comparison."""
    with running(work_settings) as address:
        yield address
