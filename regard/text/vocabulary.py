"""Vocabularies: from text to token ids and back, by subwords or by whole words.

Subwords are learned by byte-pair encoding (Sennrich et al. 2016). Words are marked at their beginning, so that the
subwords join up to the original text. A character outside the vocabulary is encoded as its bytes, so that nothing is
unknown: decode(encode(x)) is x, up to NFC and white space. In a vocabulary of words, words are lower-cased, and rare
ones become one token, "unknown".
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from regard.text.normal import tidy
from regard.text.tokenizer_json import TokenizerKind, read_tokenizer, template_of

PAD, START, END = 0, 1, 2
SPECIAL = ("<pad>", "<s>", "</s>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
UNKNOWN = "<unk>"
WORD_BEGINS = "\x1f"
"""the mark that stands for a space; Unicode takes it for white space, so tidied text never contains it"""
PLACEHOLDERS = tuple(map(chr, range(0xFDD0, 0xFDD8)))
"""tokens for what is not to be translated (text/placeholders.py): noncharacters of Unicode, which no text contains"""
TERM_MARKS = ("\ufde0", "\ufde1")
"""tokens around a term that is shown in a source (text/shown_terms.py): noncharacters too"""
_PUNCTUATION = r"[^\p{L}\p{M}\p{N}\x{200c}\x{200d}\x1f'’]"


class Piece(NamedTuple):
    """A token id and the part of the tidied text that it stands for."""

    token: int
    start: int
    end: int


class Vocabulary:
    """A tokenizer. Token ids 0, 1 and 2 are padding, start and end; encoding a text never yields them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.words = isinstance(tokenizer.model, models.WordLevel)

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size(with_added_tokens=False))

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, tidied or not, without start and end."""
        return [piece.token for piece in self.pieces(tidy(text))]

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """Return the token ids of many texts, faster than one by one."""
        return [list(encoding.ids) for encoding in self._tokenizer.encode_batch([tidy(text) for text in texts])]

    def pieces(self, tidied: str) -> list[Piece]:
        """Return the tokens with their offsets; the space before a word belongs to none of them."""
        encoding = self._tokenizer.encode(tidied)
        return [
            Piece(token, start + (tidied[start:end][:1] == " "), end)
            for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        ]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of the token ids; padding, start and end are left out."""
        names = [self.name(token) for token in tokens if token > END]
        if self.words:
            return re.sub(r" (?=[^\w\s(\[{“‘])|(?<=[(\[{“‘]) ", "", " ".join(names))
        return tidy(_join(names).replace(WORD_BEGINS, " "))  # bytes may have spelled white space

    def name(self, token: int) -> str:
        """Return the token as it is written in the vocabulary."""
        return str(self._tokenizer.id_to_token(token))

    def chunks(self, tidied: str) -> list[str]:
        """Return the chunks that are split into pieces independently: words with their mark, punctuation."""
        return [text for text, _ in self._tokenizer.pre_tokenizer.pre_tokenize_str(tidied)]

    @property
    def has_placeholders(self) -> bool:
        """Whether the placeholders are tokens of this vocabulary."""
        return self._tokenizer.token_to_id(PLACEHOLDERS[-1]) is not None

    @property
    def placeholder_ids(self) -> tuple[int, ...]:
        """the token ids of the placeholders; none in a vocabulary without them"""
        ids = map(self._tokenizer.token_to_id, PLACEHOLDERS)
        return tuple(token for token in ids if token is not None)

    @property
    def has_term_marks(self) -> bool:
        """Whether the marks around terms that are shown are tokens of this vocabulary."""
        return self._tokenizer.token_to_id(TERM_MARKS[-1]) is not None

    @property
    def merges(self) -> list[tuple[str, str]]:
        """The BPE merges, in the order in which they were learned; empty for a vocabulary of words."""
        return [(first, second) for first, second in json.loads(self.to_json())["model"].get("merges", [])]

    @property
    def tokens(self) -> dict[str, int]:
        """The mapping from tokens, as they are written in the vocabulary, to ids."""
        return dict(self._tokenizer.get_vocab(with_added_tokens=False))

    def to_json(self) -> str:
        return str(self._tokenizer.to_str(pretty=False))

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """Return the vocabulary that `to_json` wrote; raise a ValueError for the JSON of any other tokenizer."""
        kinds = {
            "BPE": TokenizerKind(template_of(_subword_tokenizer({}, []).to_str()), (*SPECIAL, *BYTES)),
            "WordLevel": TokenizerKind(template_of(_word_tokenizer({}).to_str()), (*SPECIAL, UNKNOWN)),
        }
        learned = read_tokenizer(text, kinds)
        words = learned.kind == "WordLevel"
        return cls(_word_tokenizer(learned.ids) if words else _subword_tokenizer(learned.ids, learned.merges))


def learn_subwords(texts: Sequence[str], size: int, rare: int = 3, further: Sequence[str] = ()) -> Vocabulary:
    """Learn `size` subwords besides the 256 bytes and the `further` tokens; characters seen fewer than `rare` times are
    encoded as bytes."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = _subword_chunks()
    tidied = [tidy(text) for text in texts]
    learner.train_from_iterator(tidied, trainers.BpeTrainer(vocab_size=size, show_progress=False))
    model = json.loads(learner.to_str())["model"]
    counts = Counter(character for text in tidied for character in text)
    reserved = {*SPECIAL, *BYTES}

    def is_frequent(piece: str) -> bool:
        plain = piece.replace(WORD_BEGINS, "")
        return piece not in reserved and all(counts[character] >= rare for character in plain)

    pieces = [piece for piece in sorted(model["vocab"], key=model["vocab"].__getitem__) if is_frequent(piece)]
    ids = {piece: number for number, piece in enumerate((*SPECIAL, *BYTES, *pieces))}
    for token in (WORD_BEGINS, *further):
        ids.setdefault(token, len(ids))
    merges = [(a, b) for a, b in model["merges"] if a in ids and b in ids and a + b in ids]
    return Vocabulary(_subword_tokenizer(ids, merges))


def learn_words(texts: Sequence[str], size: int | None = None) -> Vocabulary:
    """Collect all words and punctuation marks, lower-cased, or the `size` most frequent of them."""
    normalizer, chunks = normalizers.Lowercase(), _word_chunks()
    counts = Counter(
        chunk for text in texts for chunk, _ in chunks.pre_tokenize_str(normalizer.normalize_str(tidy(text)))
    )
    reserved = (*SPECIAL, UNKNOWN)
    words = [word for word, _ in counts.most_common(size) if word not in reserved]
    ids = {word: number for number, word in enumerate((*reserved, *words))}
    return Vocabulary(_word_tokenizer(ids))


def learn(
    texts: Sequence[str], kind: Literal["subwords", "words"], size: int | None, further: Sequence[str] = ()
) -> Vocabulary:
    """Learn a vocabulary of either kind; `size` None keeps all words, and is not allowed for subwords. `further` tokens
    are for subwords alone."""
    if kind == "words":
        return learn_words(texts, size)
    assert size is not None
    return learn_subwords(texts, size, further=further)


def _subword_tokenizer(ids: dict[str, int], merges: list[tuple[str, str]]) -> Tokenizer:
    """Return the tokenizer of subwords with these tokens and merges."""
    tokenizer = Tokenizer(models.BPE(ids, merges, byte_fallback=True))
    tokenizer.pre_tokenizer = _subword_chunks()
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(replacement=WORD_BEGINS), decoders.Fuse()]
    )
    return tokenizer


def _word_tokenizer(ids: dict[str, int]) -> Tokenizer:
    """Return the tokenizer of whole words with these tokens."""
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), _word_chunks()
    return tokenizer


def _word_chunks() -> pre_tokenizers.PreTokenizer:
    """Split at white space; punctuation is split off."""
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(_PUNCTUATION), "isolated"), pre_tokenizers.WhitespaceSplit()]
    )


def _subword_chunks() -> pre_tokenizers.PreTokenizer:
    """Split into words with their mark; punctuation is split off, so that "boy" and "boy." share a piece."""
    marked = pre_tokenizers.Metaspace(replacement=WORD_BEGINS, prepend_scheme="always", split=True)
    return pre_tokenizers.Sequence([marked, pre_tokenizers.Split(Regex(_PUNCTUATION), "isolated")])


def _join(names: Sequence[str]) -> str:
    """Concatenate tokens; runs of byte tokens are decoded as UTF-8."""
    text, run = [], bytearray()
    for name in (*names, ""):
        if name in _BYTE_OF:
            run.append(_BYTE_OF[name])
            continue
        text.append(run.decode("utf-8", errors="replace"))
        run.clear()
        text.append(name)
    return "".join(text)


_BYTE_OF = {name: byte for byte, name in enumerate(BYTES)}
