"""Clients of LibreTranslate, unchanged, against a server of ours."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import AuthorizationException
from libretranslatepy import LibreTranslateAPI

import regard
from regard.serving.settings import ServerSettings
from tests.serving.live import running

TEXT = "The boy sees a mango."
CLIENTS = Path(__file__).parents[1] / "clients"
KEY = "a-secret-key"


@pytest.fixture(scope="module")
def expected(german_folder: Path) -> str:
    return str(regard.load(german_folder, "cpu").translate(TEXT))  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def locked_address(german_folder: Path) -> Iterator[str]:
    """The address of a server that needs a key."""
    with running(ServerSettings([german_folder], keys=frozenset((KEY,)))) as address:
        yield address


@pytest.fixture(params=["libretranslatepy", "argostranslate"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type:
    """A class of clients. That of argostranslate is in a folder of its own, because it brings a package `tests`."""
    if request.param == "libretranslatepy":
        return LibreTranslateAPI
    monkeypatch.syspath_prepend(Path(sys.prefix) / "clients")
    from argostranslate.apis import LibreTranslateAPI as ArgosAPI

    return ArgosAPI


def test_python_clients(client: type, api_address: str, locked_address: str, expected: str) -> None:
    api = client(api_address)
    assert api.translate(TEXT, "en", "de") == expected
    assert api.translate(TEXT, "auto", "de") == expected
    assert api.detect(TEXT)[0]["language"] == "en"
    assert {"code": "en", "name": "English", "targets": ["de", "en", "mr"]} in api.languages()
    assert client(api_address, "ignored-where-none-is-set").translate(TEXT, "en", "de") == expected
    assert client(locked_address, KEY).translate(TEXT, "en", "de") == expected
    assert client(locked_address).languages()
    for wrong in (client(locked_address), client(locked_address, "another-key")):
        with pytest.raises(HTTPError, match="403"):
            wrong.translate(TEXT, "en", "de")


def test_deep_translator(api_address: str, locked_address: str, expected: str, tmp_path: Path) -> None:
    translator = LibreTranslator("en", "de", api_key="ignored", custom_url=f"{api_address}/")
    assert translator.translate(TEXT) == expected
    assert translator.translate_batch([TEXT, TEXT]) == [expected] * 2
    (tmp_path / "text.txt").write_text(TEXT)
    assert translator.translate_file(str(tmp_path / "text.txt")) == expected
    assert (
        LibreTranslator("English", "German", api_key=KEY, custom_url=f"{locked_address}/").translate(TEXT) == expected
    )
    with pytest.raises(AuthorizationException):
        LibreTranslator("en", "de", api_key="wrong", custom_url=f"{locked_address}/").translate(TEXT)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.skipif(not (CLIENTS / "node_modules").is_dir(), reason="`npm ci` has not run in tests/serving/clients")
def test_npm_clients(api_address: str, expected: str) -> None:
    done = subprocess.run(
        ["node", str(CLIENTS / "talk.mjs"), api_address], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["translate"] == expected
    assert report["failure"] == "target: 'fr' is not supported; the languages are en, mr, de"
    assert report["languages"][0]["name"] == "English"
    assert report["detect"]["status"] == 200 and report["detect"]["language"] == "en"
    assert report["libre"]["translatedText"] == expected and len(report["libre"]["alternatives"]) >= 1
    assert report["auto"]["translatedText"] == expected
    assert report["wrong"]["error"] == "q: it is missing"
