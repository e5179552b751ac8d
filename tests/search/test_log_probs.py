"""Log-probabilities of the next token."""

import torch

from regard.search.log_probs import CPU_SENTENCES, log_probs, sentence_chunks
from regard.text.vocabulary import END


def test_what_is_never_generated_is_impossible() -> None:
    logits = torch.randn(2, 3, 7)
    for allow_end in (True, False):
        values = log_probs(logits.bfloat16(), allow_end)
        never = list(range(END if allow_end else END + 1))
        assert values.dtype is torch.float32 and values[..., never].isinf().all()
        rest = torch.log_softmax(logits.bfloat16().float(), -1)[..., len(never) :]
        torch.testing.assert_close(values[..., len(never) :], rest)


def test_every_sentence_comes_once_in_its_place() -> None:
    for count in (0, 1, CPU_SENTENCES, 2 * CPU_SENTENCES + 3):
        logits = torch.arange(count)[:, None]
        places = torch.arange(count)
        assert all(torch.equal(part[:, 0], places[rows]) for rows, part in sentence_chunks(logits))
        assert sum(len(part) for _, part in sentence_chunks(logits)) == count
