"""The server as a whole."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest


def test_models(studio_address: str) -> None:
    with urlopen(f"{studio_address}/api/models") as response:
        (model,) = json.load(response)
    assert (model["name"], model["task"], model["languages"]) == ("toy", "translate", ["en", "mr"])


def test_assets_stay_in_their_folder(studio_address: str) -> None:
    with urlopen(f"{studio_address}/assets/look/grid.js") as response:
        assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
    for path in ("look/../page.py", "look/%2e%2e/page.py", "other/grid.js", "look/nothing.js", "look//grid.js"):
        with pytest.raises(HTTPError, match="404") as error:
            urlopen(f"{studio_address}/assets/{path}")
        assert "there is no such file" in json.load(error.value)["error"]
