"""Two models on one sentence, and the tables of `regard compare`."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

import regard
from regard.experiments.compare.folder import is_comparison
from regard.experiments.compare.reading import read_comparison
from regard.serving.settings import ServerSettings
from tests.serving.studio.asking import get, post

TEXT = "The boy sees a mango."


def test_two_models_read_the_translations_of_both(work_address: str, translator_folder: Path) -> None:
    result = post(work_address, "/compare", text=f"  {TEXT} ", models=["toy", "attends"], target="मुलगा आंबा पाहतो.")
    translator = regard.load(translator_folder, "cpu")
    assert isinstance(translator, regard.Translator)
    assert (result["source"], result["models"]) == (TEXT, ["toy", "attends"])
    own, other, given = result["targets"]
    assert (own["by"], other["by"], given["by"]) == (0, 1, None)
    assert own["text"] == translator.translate(TEXT) and given["text"] == "मुलगा आंबा पाहतो."
    (trace,) = translator.force_decode([TEXT], [given["text"]])
    assert given["log_probabilities"][0] == pytest.approx(trace.candidates[0].log_probability, abs=1e-3)
    assert given["comparable"]
    (traces,) = result["content"]["traces"]
    assert len(traces) == 6
    assert traces[4]["target"]["words"] == traces[5]["target"]["words"]
    assert [each["attentions"][0]["heads"] for each in traces[4:]] == [1, 2]


def test_mistakes_are_named(work_address: str) -> None:
    assert post(work_address, "/compare", text=" ", models=["toy", "toy"])[1] == (
        "text: expected a sentence, got nothing but blanks"
    )
    assert post(work_address, "/compare", text="a", models=["toy", "judge"])[0] == 422
    assert post(work_address, "/compare", text="a", models=["toy", "none"])[0] == 404
    assert post(work_address, "/compare", text="a", models=["toy"])[0] == 422


def test_a_comparison_and_its_models(work_address: str, work_settings: ServerSettings) -> None:
    (folder,) = work_settings.comparisons
    assert get(work_address, "/comparisons") == ["compared"]
    result = get(work_address, "/comparisons/compared")
    comparison = read_comparison(folder)
    assert [kind["name"] for kind in result["comparison"]["kinds"]] == [kind.name for kind in comparison.kinds]
    assert result["comparison"]["conclusions"] == comparison.conclusions
    assert set(result["models"]) == {"rnn", "attends"}  # kinds; a model of that name was there already
    assert result["models"]["attends"] == "attends-2"
    first = result["differing"][0]
    assert len(first["translations"]) == len(first["scores"]) == 2
    spreads = [max(each["scores"]) - min(each["scores"]) for each in result["differing"]]
    rounding = 0.1  # of the spread of scores that are rounded to one decimal
    assert all(one >= other - 1.1 * rounding for one, other in pairwise(spreads))
    assert get(work_address, "/comparisons/other")[0] == 404


def test_a_damaged_comparison_is_named(tmp_path: Path, work_settings: ServerSettings, translator_folder: Path) -> None:
    (folder,) = work_settings.comparisons
    assert is_comparison(folder) and not is_comparison(translator_folder)
    (tmp_path / "plan.json").write_bytes((folder / "plan.json").read_bytes())
    with pytest.raises(ValueError, match=r"expected a comparison that has ended; it has no compare\.json"):
        read_comparison(tmp_path)
    results = json.loads((folder / "compare.json").read_text())
    (tmp_path / "compare.json").write_text(json.dumps(results | {"kinds": [{"name": "other"}]}))
    with pytest.raises(ValueError, match="damaged: expected the results of a comparison"):
        read_comparison(tmp_path)
