"""What the tasks that read or write text have in common: batches of texts of similar length."""

from __future__ import annotations

from collections.abc import Sequence

from regard.text.batches import arrange
from regard.text.examples import Example
from regard.training.task import NewTask

SMALLEST_BATCH = 16  # mean number of texts per batch, down to which batches may be made smaller in a run by the clock
LOADING_SECONDS = 1.0  # seconds to load the model for the final scoring, and to exit


class TextTask(NewTask):
    seed: int
    batch_given: bool = True  # whether the batch size must not change, as when the user set it

    @property
    def smallest_batch_fraction(self) -> float:
        return 1.0 if self.batch_given else min(1.0, SMALLEST_BATCH * self.batches_per_epoch() / self.size)

    def arranged(self, examples: Sequence[Example], epoch: int, fraction: float = 1.0) -> list[list[int]]:
        """Return the rows of each batch of an epoch; `fraction`: the batch size, as a fraction of the recipe's."""
        return arrange(examples, *self.batch_limits(fraction), self.seed, epoch)

    def batch_limits(self, fraction: float = 1.0) -> tuple[int, int]:
        """Return how many sentences and tokens a batch may have, if it has this fraction of the recipe's size."""
        training = self.recipe.training
        sizes = (training.batch_sentences or 10**9, training.batch_tokens or 10**9)
        sentences, tokens = (max(1, round(fraction * size)) for size in sizes)
        return sentences, tokens
