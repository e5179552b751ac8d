"""How robust are translators to how people write: capitals, lower case, no punctuation, typographic quotes, words.

    python benchmarks/robustness.py MODEL [MODEL ...] --pairs PAIRS [PAIRS] [--words TRAIN [TRAIN]] [--show TEXT ...]

Translates the sources of PAIRS as they are and in other forms, and prints the chrF++ of each form. Hypotheses and
references are lower-cased and lose their punctuation before they are scored, so that only the words count.

With --words, also single words are translated: the most frequent source words of TRAIN that have a dominant
translation. A word counts as right if the model's answer is a word that the statistical alignment of TRAIN links with
it. --show prints the translations of further texts.
"""

from __future__ import annotations

import argparse
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

import torch

import regard
from regard.alignment.statistical import statistical_links
from regard.metrics.translation import group, score
from regard.tasks.translation.predictor import Translator
from regard.text.normal import tidy
from regard.text.pairs import Pair, read_references

MAX_WORDS = 200
DOMINANT, ACCEPTED = 0.5, 0.1  # fractions of the links of a word: of its first translation, of each that is accepted
MIN_LINKS = 5


def without_punctuation(text: str) -> str:
    """Return the text without any character that Unicode calls punctuation."""
    return tidy("".join(letter for letter in text if not unicodedata.category(letter).startswith("P")))


def typographic(text: str) -> str:
    """Return the text with the apostrophes and quotation marks of print."""
    quotes = text.count('"')
    for number in range(quotes):
        text = text.replace('"', "”" if number % 2 else "“", 1)
    return text.replace("'", "’")


FORMS: dict[str, Callable[[str], str]] = {
    "as they are": str,
    "in capitals": str.upper,
    "lower case": str.lower,
    "no punctuation": without_punctuation,
    "lower case, no punctuation": lambda text: without_punctuation(text.lower()),
    "capitals, no punctuation": lambda text: without_punctuation(text.upper()),
    "typographic quotes": typographic,
    "doubled blanks": lambda text: text.replace(" ", "  "),
}


def bare(text: str) -> str:
    """Return what is scored."""
    return without_punctuation(text).lower()


def scores(translator: Translator, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return the chrF++ of each form of the sources."""
    sources, references = group(pairs)
    expected = [[bare(reference) for reference in each] for each in references]
    return {
        name: score([bare(text) for text in translator.translate([form(source) for source in sources])], expected).chrf
        for name, form in FORMS.items()
    }


def dominant_words(pairs: Sequence[Pair]) -> dict[str, set[str]]:
    """Return the most frequent source words, each with the translations that are accepted."""
    sides = [(bare(pair.source).split(), bare(pair.target).split()) for pair in pairs]
    links: dict[str, Counter[str]] = {}
    for (source, target), pair_links in zip(sides, statistical_links(sides), strict=True):
        for i, j in pair_links:
            links.setdefault(source[i], Counter())[target[j]] += 1
    words: dict[str, set[str]] = {}
    for word, counts in sorted(links.items(), key=lambda item: (-item[1].total(), item[0])):
        total, (_, first) = counts.total(), counts.most_common(1)[0]
        if total >= MIN_LINKS and first >= DOMINANT * total and not any(map(str.isdigit, word)):
            words[word] = {target for target, count in counts.items() if count >= ACCEPTED * total}
    return dict(list(words.items())[:MAX_WORDS])


def correct_words(translator: Translator, words: dict[str, set[str]]) -> tuple[float, float]:
    """Return the percentage of words whose translation is an accepted word, and of translations of more than a word."""
    answers = [bare(text) for text in translator.translate(list(words))]
    correct = sum(answer in accepted for answer, accepted in zip(answers, words.values(), strict=True))
    longer = sum(len(answer.split()) > 1 for answer in answers)
    return 100 * correct / len(words), 100 * longer / len(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="model folders")
    parser.add_argument("--pairs", nargs="+", required=True, help="one file of pairs, or two parallel files")
    parser.add_argument("--words", nargs="+", help="training pairs, from which single words are taken")
    parser.add_argument("--show", nargs="+", default=[], help="texts whose translations are printed")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    pairs = read_references(options.pairs)
    words = dominant_words(read_references(options.words)) if options.words else {}
    for folder in options.models:
        translator = regard.load(folder)
        assert isinstance(translator, Translator)
        print(f"{folder}: chrF++ of {len(pairs):,} pairs, without case and punctuation")
        results = scores(translator, pairs)
        for name, value in results.items():
            print(f"  {name:28} {value:6.2f}  {value - results['as they are']:+6.2f}")
        if words:
            correct, longer = correct_words(translator, words)
            print(f"  {'single words':28} {correct:6.1f} % of {len(words)} right, {longer:.1f} % longer than a word")
        for text, answer in zip(options.show, translator.translate(options.show), strict=True):
            print(f"  {text}  →  {answer}")


if __name__ == "__main__":
    main()
