"""examples/sequences.py: targets are right, by what we did not write, and no source is met twice."""

import importlib.util
from datetime import datetime
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "sequences.py"
WRITTEN = ("%d %B %Y", "%B %d, %Y", "%A, %d %b %Y", "%d.%m.%Y")


@pytest.fixture(scope="module")
def sequences() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sequences", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("task", ["dates", "pronunciation", "reversal"])
def test_no_source_is_met_twice(sequences: ModuleType, task: str) -> None:
    parts = sequences.parts(task)
    sources = [source for pairs in parts.values() for source, _ in pairs]
    assert len({*sources}) == len(sources) == 9500
    assert parts == sequences.parts(task)


def test_dates_are_read_as_the_standard_library_reads_them(sequences: ModuleType) -> None:
    read = 0
    for source, target in sequences.parts("dates")["test"]:
        for form in WRITTEN:
            try:
                result = datetime.strptime(source, form)
            except ValueError:
                continue
            assert result.date().isoformat() == target
            read += 1
    assert read > 600  # all but those with an ordinal


@pytest.mark.parametrize(
    ("word", "sounds"),
    [
        ("gnocchi", "ɲokːi"),
        ("ciao", "tʃao"),
        ("scena", "ʃena"),
        ("scuola", "skuola"),
        ("casa", "kaza"),
        ("famiglia", "famiʎa"),
        ("pizza", "pitːsa"),
        ("maschera", "maskera"),
        ("ghiaccio", "ɡiatːʃo"),
        ("questo", "kwesto"),
        ("caffè", "kafːɛ"),
    ],
)
def test_italian_words_are_said_by_their_rules(sequences: ModuleType, word: str, sounds: str) -> None:
    assert sequences.pronounced(word) == sounds


def test_reversal_is_from_the_end(sequences: ModuleType) -> None:
    assert all(source == target[::-1] for source, target in sequences.parts("reversal")["test"])
