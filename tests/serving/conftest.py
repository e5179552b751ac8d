"""What tests of the server share: small translators, a server with the page, and one without.

A request must call a server by one of its names: in process, `TestClient(app, base_url="http://localhost")`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from regard.serving.app import create_app
from regard.serving.settings import ServerSettings
from tests.serving.live import running
from tests.tasks.small import small

SUBJECTS = {"The boy": "Der Junge", "The girl": "Das Mädchen", "Rahul": "Rahul", "My friend": "Mein Freund"}
VERBS = {"sees": "sieht", "wants": "will", "buys": "kauft", "likes": "mag"}
OBJECTS = {"a mango": "eine Mango", "the book": "das Buch", "some water": "Wasser", "a house": "ein Haus"}
GERMAN = [
    (f"{subject} {verb} {thing}.", f"{SUBJECTS[subject]} {VERBS[verb]} {OBJECTS[thing]}.")
    for subject in SUBJECTS
    for verb in VERBS
    for thing in OBJECTS
]


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a translator, trained for a few updates. Not to be changed."""
    out = tmp_path_factory.mktemp("serving") / "toy"
    small(out, languages=("en", "mr"))
    return out


@pytest.fixture(scope="session")
def german_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a translator into German that writes words. Not to be changed."""
    out = tmp_path_factory.mktemp("serving") / "german"
    more = {"training.epochs": 8, "training.learning_rate": 0.02, "model.dropout": 0.0, "training.average": 0.9}
    small(out, GERMAN, more, languages=("en", "de"))
    return out


@pytest.fixture(scope="session")
def studio_address(translator_folder: Path) -> Iterator[str]:
    """The address of a server with the page."""
    with running(ServerSettings([translator_folder], studio=True)) as address:
        yield address


@pytest.fixture(scope="session")
def api_address(translator_folder: Path, german_folder: Path) -> Iterator[str]:
    """The address of a server without the page, with two models."""
    with running(ServerSettings([translator_folder, german_folder])) as address:
        yield address


@pytest.fixture(scope="session")
def api_app(translator_folder: Path, german_folder: Path) -> FastAPI:
    """The application of such a server."""
    return create_app(ServerSettings([translator_folder, german_folder]))


@pytest.fixture(scope="session")
def api(api_app: FastAPI) -> Iterator[TestClient]:
    """A client of such a server, in process."""
    with TestClient(api_app, base_url="http://localhost") as client:
        yield client
