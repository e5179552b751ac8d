"""What a search makes of logits."""

import torch

from regard.search.chances import ROWS, by_rows, chances
from regard.text.vocabulary import END


def test_what_is_never_said_has_no_chance() -> None:
    logits = torch.randn(2, 3, 7)
    for ended in (True, False):
        found = chances(logits.bfloat16(), ended)
        never = list(range(END if ended else END + 1))
        assert found.dtype is torch.float32 and found[..., never].isinf().all()
        rest = torch.log_softmax(logits.bfloat16().float(), -1)[..., len(never) :]
        torch.testing.assert_close(found[..., len(never) :], rest)


def test_every_row_comes_once_in_its_place() -> None:
    for count in (0, 1, ROWS, 2 * ROWS + 3):
        logits = torch.arange(count)[:, None]
        places = torch.arange(count)
        assert all(torch.equal(part[:, 0], places[some]) for some, part in by_rows(logits))
        assert sum(len(part) for _, part in by_rows(logits)) == count
