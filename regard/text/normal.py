"""Two normal forms of a text: one to train on and score, a coarser one to tell whether two sources are the same."""

import unicodedata

APOSTROPHES = "'`´‘’‛ʼ＇"


def tidy(text: str) -> str:
    """NFC, every run of white space (U+00A0, U+202F, U+2028 … too) one blank, none at the ends.

    Zero-width joiners are no white space: they change how a word is written, and stay.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def match_key(text: str) -> str:
    """What two texts have in common that differ only in case, punctuation and width.

    Apostrophes dropped, NFKC, lower case, whatever is no letter, mark or digit a blank, blanks collapsed. A text that
    has none of these ("?!") is its own key, tidied.
    """
    folded = unicodedata.normalize("NFKC", text.translate(_NO_APOSTROPHES)).lower()
    return " ".join(folded.translate(_WORD_CHARACTERS).split()) or tidy(text)


class _WordCharacters(dict[int, int]):
    """For `str.translate`, filled as characters are met: letters, marks and digits stay, the rest is a blank."""

    def __missing__(self, code: int) -> int:
        self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else ord(" ")
        return self[code]


_NO_APOSTROPHES = dict.fromkeys(map(ord, APOSTROPHES))
_WORD_CHARACTERS = _WordCharacters()
