"""Which validated model is the best so far, and when to stop early."""

from __future__ import annotations

import math

from regard.training.checkpoint import Progress
from regard.training.task import Validation


def is_best(progress: Progress, validation: Validation) -> bool:
    """Return whether this model is the best so far; of equal scores, the lower loss is better."""
    loss, best_loss = _or_inf(validation.loss), _or_inf(progress.best_loss)
    return not progress.best_update or (validation.score, -loss) > (progress.best, -best_loss)


def record_validation(progress: Progress, validation: Validation, best: bool) -> None:
    """Note a validation in the progress; `best`: its model is the best so far.

    It counts towards early stopping if neither the score nor the loss on dev got better, in the second half of the run.
    """
    plan, lower = progress.planned, _or_inf(validation.loss) < _or_inf(progress.lowest_loss)
    if best:
        progress.best, progress.best_update, progress.waited = validation.score, progress.update, 0
        progress.best_loss, progress.constant = validation.loss, validation.constant
    elif not lower and (plan is None or progress.update > plan.updates / 2):
        progress.waited += 1
    if lower:
        progress.lowest_loss = validation.loss
    progress.validated = progress.update
    progress.validations += 1


def _or_inf(loss: float | None) -> float:
    return math.inf if loss is None else loss
