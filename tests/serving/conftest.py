"""What tests of the server share: a small translator, and a server with the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.serving.settings import ServerSettings
from tests.serving.live import running
from tests.tasks.small import small


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a translator, trained for a few updates. Not to be changed."""
    out = tmp_path_factory.mktemp("serving") / "toy"
    small(out, languages=("en", "mr"))
    return out


@pytest.fixture(scope="session")
def studio_address(translator_folder: Path) -> Iterator[str]:
    """The address of a server with the page."""
    with running(ServerSettings([translator_folder], studio=True)) as address:
        yield address
