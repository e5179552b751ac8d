"""What the end of a training adds to a translator: beam size, length penalty, scores on dev, and confidence."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.metrics.translation import Scores, score
from regard.runtime.distributed import ALONE, World
from regard.tasks.translation.calibration import (
    MAX_SOURCES,
    RatedWords,
    calibrated_confidence,
    calibration_sources,
    rated_words,
)
from regard.tasks.translation.chosen_search import (
    BEAMS,
    DEFAULT,
    PENALTIES,
    RankedTranslation,
    SearchChoice,
    choose_search,
)
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.training.task import evenly_spaced

MIN_SECONDS = 600  # the time limit from which on several beam sizes are tried: each is a search of dev
MIN_SECONDS_OF_PENALTIES = 120  # the same for length penalties, of which each has its chrF++
TRIAL = 32  # sources on which the time of the search of dev is measured before it begins
TOLERANCE = 0.03  # the fraction of the time limit by which the measurement may be wrong
CALIBRATED_AT_ONCE = 8  # sources that are calibrated between two looks at the clock, if the time is limited


@dataclass(frozen=True)
class ScoringEffort:
    """How much the final scoring does besides scoring."""

    calibrated: int = MAX_SOURCES  # the sources on which confidence is calibrated, at most
    beams: tuple[int, ...] = BEAMS  # the beam sizes that are tried if the recipe has none
    penalties: tuple[float, ...] = PENALTIES  # the length penalties, likewise
    deadline: float | None = None  # by time.monotonic, when the calibration ends with fewer sources; None: never

    @classmethod
    def within(cls, seconds: float | None) -> ScoringEffort:
        """Return the effort at the end of a run with this time limit; None: without one."""
        limit = math.inf if seconds is None else seconds
        beams = BEAMS if limit >= MIN_SECONDS else BEAMS[:1]
        penalties = PENALTIES if limit >= MIN_SECONDS_OF_PENALTIES else (DEFAULT,)
        return cls(calibration_sources(seconds), beams, penalties)

    def of_sample(self, count: int, total: int) -> ScoringEffort:
        """Return the effort for `count` of `total` sources that takes as much time for each of them."""
        return replace(self, calibrated=-(-count * self.calibrated // max(self.calibrated, total)))


@dataclass(frozen=True)
class FinalResults:
    """What was measured and chosen on dev."""

    scores: Scores
    beam: int
    length_penalty: float
    choice: SearchChoice | None  # None: there was nothing to choose
    confidence: dict[str, Any] | None  # the entry of the card; None: no translation has words


def final_results(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    effort: ScoringEffort = ScoringEffort(),  # noqa: B008 (frozen)
    world: World = ALONE,
) -> FinalResults:
    """Score a model as `evaluate` does; before, choose its beam size and length penalty if the recipe leaves them open.
    Its confidence is calibrated on sources evenly spaced. The processes of `world` share the sources."""
    given, choice = translator.recipe.search, None
    beams = effort.beams if given.beam is None else (given.beam,)
    penalties = effort.penalties if given.length_penalty is None else (given.length_penalty,)
    if beams != (1,) and len(beams) * len(penalties) > 1:
        choice = choose_search(translator, sources, references, beams, penalties, world)
    beam, penalty = beams[0], penalties[0] if len(penalties) == 1 else DEFAULT
    if choice is not None:
        beam, penalty = choice.beam, choice.penalty
    if choice is not None and not given.mbr:
        translations = choice.translations
    else:
        search = replace(translator.search, beam=beam, length_penalty=penalty)
        translations = world.map(sources, lambda own: _translated(translator, own, search))
    scores = score([each.text for each in translations], references)
    rows = evenly_spaced(len(sources), effort.calibrated)
    chosen, known = [translations[row] for row in rows], [references[row] for row in rows]
    return FinalResults(scores, beam, penalty, choice, _confidence(translator, chosen, known, effort.deadline, world))


def sources_in_time(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    limit: float,
    left: float,
    world: World = ALONE,
) -> int:
    """Return how many sources of dev can be searched within the seconds that are left of the time limit: all of them,
    as far as a trial on a few evenly spaced ones can tell, or fewer.

    A model that has hardly learned to end its outputs takes many times as long as one that has, and no run should take
    longer than its time limit because of that.
    """
    if len(sources) < 4 * TRIAL:
        return len(sources)
    began, rows = time.monotonic(), evenly_spaced(len(sources), TRIAL)
    sample, known = [sources[row] for row in rows], [references[row] for row in rows]
    final_results(translator, sample, known, replace(ScoringEffort.within(limit), calibrated=0), world)
    spent = time.monotonic() - began
    needed, left = spent * sum(map(len, sources)) / sum(map(len, sample)), left - spent
    fitting = len(sources) if needed <= left + TOLERANCE * limit else int(len(sources) * left / needed)
    return max(TRIAL, world.broadcast(fitting))


def _translated(translator: Translator, sources: Sequence[str], search: Search) -> list[RankedTranslation]:
    """Return translations without their traces, which would take much memory for all of dev."""
    best = [answer.translations[0] for answer in translator.answers(sources, search)]
    return [
        RankedTranslation(each.text, [(part.source.text, list(part.target.tokens)) for part in each.parts])
        for each in best
    ]


def _confidence(
    translator: Translator,
    translations: Sequence[RankedTranslation],
    references: Sequence[Sequence[str]],
    deadline: float | None,
    world: World,
) -> dict[str, Any] | None:
    """Return the entry `confidence` of the card, from the translations that are rated by the deadline."""

    def rated(own: Sequence[tuple[RankedTranslation, Sequence[str]]]) -> list[RatedWords | None]:
        results: list[RatedWords | None] = [None] * len(own)
        chunks = 1 if deadline is None else max(1, len(own) // CALIBRATED_AT_ONCE)
        for chunk in range(chunks):  # each is spread over all of them, which may be sorted by length
            if deadline is not None and chunk and time.monotonic() >= deadline:
                break
            some = own[chunk::chunks]
            parts = [[translator.translated_part(*part) for part in each.parts] for each, _ in some]
            results[chunk::chunks] = rated_words(translator, parts, [known for _, known in some])
        return results

    return calibrated_confidence(world.map(list(zip(translations, references, strict=True)), rated), "dev")
