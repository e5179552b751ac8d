"""Default sizes of a training, which depend on the model and on the amount of data."""

from __future__ import annotations

import math

MAX_EPOCHS, MOST_EPOCHS_PAIRS = 150, 30_000  # the most epochs expected, and the number of pairs that takes them


class TrainingSizes:
    """The sizes of a recurrent model; the options of a model derive from this class and override what differs."""

    def batch_sentences(self, pairs: int) -> int:
        """Return the sentences per batch: from 8 for very little data to 180, and 360 for much."""
        return max(8, min(180, pairs // 50)) if pairs < 200_000 else 360

    def expected_epochs(self, pairs: int) -> int:
        """Return about how many epochs a run takes that goes on while dev improves, for its estimate: few for little
        data, which is learned by heart soon, most for some ten thousand pairs."""
        relative = pairs / MOST_EPOCHS_PAIRS
        return max(5, round(MAX_EPOCHS * math.pow(relative, 0.4 if relative < 1 else -0.5)))

    def rate_factor(self, batch: float) -> float:
        """Return the factor of the learning rate for batches of this fraction of the full size."""
        return 1.0


class TransformerSizes(TrainingSizes):
    """A Transformer learns more from larger batches."""

    def batch_sentences(self, pairs: int) -> int:
        return max(24, min(360, pairs // 55)) if pairs < 200_000 else 720

    def rate_factor(self, batch: float) -> float:
        """Return the square root: smaller batches need a lower learning rate."""
        return math.sqrt(batch)
