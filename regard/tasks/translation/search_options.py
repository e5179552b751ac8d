"""The options of a search for translations."""

from __future__ import annotations

from dataclasses import dataclass

from regard.config.recipe import DEFAULT_BEAM, Recipe


@dataclass(frozen=True)
class Search:
    """The options of the search for translations."""

    beam: int = DEFAULT_BEAM  # 1: greedy
    n_best: int = 1  # the number of translations with different texts; fewer where no more are found
    length_penalty: float = 1.0
    sample: bool = False  # sample tokens instead of beam search
    temperature: float | None = None  # of samples: lower is safer; None: 1, with `mbr` 0.5
    top_k: int | None = None  # sample only from the k most probable tokens
    top_p: float | None = None  # sample only from the most probable tokens whose probabilities sum to p
    mbr: int = 0  # minimum-Bayes-risk decoding by chrF++ with so many samples, and the beam's hypotheses; 0: off
    seed: int = 1  # of the samples of `mbr`

    def __post_init__(self) -> None:
        for name in ("beam", "n_best", "top_k"):
            value = getattr(self, name)
            if (not isinstance(value, int) or value < 1) and not (name == "top_k" and value is None):
                raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")
        for name in ("mbr", "seed"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{name}: expected a whole number of at least 0, got {value!r}")
        if self.mbr and self.sample:
            raise ValueError("mbr: expected 0 with sample, which draws one sample for each translation")
        if self.n_best > max(self.beam, self.mbr) and not self.sample:
            limit = f"the {self.mbr} samples of mbr" if self.mbr > self.beam else f"the beam's {self.beam}"
            raise ValueError(f"n_best: expected at most {limit}, got {self.n_best}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p: expected a number above 0 and up to 1, got {self.top_p!r}")
        if self.temperature is not None and not 0 < self.temperature < float("inf"):
            raise ValueError(f"temperature: expected a number above 0, got {self.temperature!r}")
        if not 0 <= self.length_penalty <= 100:
            raise ValueError(f"length_penalty: expected a number from 0 to 100, got {self.length_penalty!r}")


def search_of(recipe: Recipe) -> Search:
    """Return the search options of a recipe; what training has not chosen yet has its default."""
    given = recipe.search
    penalty = 1.0 if given.length_penalty is None else given.length_penalty
    return Search(given.beam or DEFAULT_BEAM, length_penalty=penalty, mbr=given.mbr)
