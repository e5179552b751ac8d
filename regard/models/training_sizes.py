"""Default sizes of a training, which depend on the model and on the amount of data."""

from __future__ import annotations

import math


class TrainingSizes:
    """The sizes of a recurrent model; the options of a model derive from this class and override what differs."""

    def batch_sentences(self, pairs: int) -> int:
        """Return the sentences per batch: from 8 for very little data to 180, and 360 for much."""
        return max(8, min(180, pairs // 50)) if pairs < 200_000 else 360

    def epochs(self, pairs: int) -> int:
        """Return the number of epochs: less data is read more often, so that a run sees about as many pairs in all."""
        return max(5, min(100, round(1_100_000 / pairs)))

    def rate_factor(self, batch: float) -> float:
        """Return the factor of the learning rate for batches of this fraction of the full size."""
        return 1.0


class TransformerSizes(TrainingSizes):
    """A Transformer learns more from larger batches, and needs more epochs."""

    def batch_sentences(self, pairs: int) -> int:
        return max(24, min(360, pairs // 55)) if pairs < 200_000 else 720

    def epochs(self, pairs: int) -> int:
        return 2 * super().epochs(pairs)

    def rate_factor(self, batch: float) -> float:
        """Return the square root: smaller batches need a lower learning rate."""
        return math.sqrt(batch)
