"""Two normal forms of a text: one for training and scoring, and a coarser one that decides if two sources are equal."""

import unicodedata

APOSTROPHES = "'`´‘’‛ʼ＇"


def tidy(text: str) -> str:
    """Return the text in NFC, stripped, with every run of white space (also U+00A0, U+202F, U+2028 …) as one space.

    Zero-width joiners are not white space: they change how a word is written, so they stay.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def match_key(text: str) -> str:
    """Return a key that is equal for texts that differ only in case, punctuation and width.

    Apostrophes are dropped; the text is brought to NFKC and lower case; characters other than letters, marks and digits
    become spaces, and spaces are collapsed. A text without letters, marks and digits ("?!") is its own key, tidied.
    """
    if text.isascii():  # the same, several times as fast
        return b" ".join(text.encode().translate(_ASCII_KEYS, _ASCII_APOSTROPHES).split()).decode() or tidy(text)
    folded = unicodedata.normalize("NFKC", text.translate(_NO_APOSTROPHES)).lower()
    return " ".join(folded.translate(_WORD_CHARACTERS).split()) or tidy(text)


class _WordCharacters(dict[int, int]):
    """A table for `str.translate`, filled on demand: letters, marks and digits stay, other characters become spaces."""

    def __missing__(self, code: int) -> int:
        self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else ord(" ")
        return self[code]


_NO_APOSTROPHES = dict.fromkeys(map(ord, APOSTROPHES))
_WORD_CHARACTERS = _WordCharacters()
_ASCII_APOSTROPHES = "".join(filter(str.isascii, APOSTROPHES)).encode()
_ASCII_KEYS = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else ord(" ") for code in range(256))
