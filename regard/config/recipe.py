"""A recipe: everything that decides what a training run computes, as a tree of dataclasses.

Six come with the package: `rnn`, `transformer`, `article` (the word-level English–Marathi tutorial), `classify`,
`images` and `captions`; others come from TOML files (recipe_text.py). Values that a recipe leaves open (None) are
chosen from the size of the data before training, beam size and length penalty on dev after it; the recipe of a trained
model has them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from regard.config import sizes
from regard.core.checks import fraction, positive, whole_number
from regard.models.building import ModelOptions
from regard.models.documents.classifier import ClassifierOptions
from regard.models.images.captioner import CaptionerOptions
from regard.models.images.model import ImageOptions
from regard.models.recurrent.model import RecurrentOptions
from regard.models.transformer.model import DROPOUT, SMALL_CORPUS_DROPOUT, TransformerOptions
from regard.text.shown_terms import FRACTION

KINDS: Mapping[str, type[ModelOptions]] = {
    "rnn": RecurrentOptions,
    "transformer": TransformerOptions,
    "classifier": ClassifierOptions,
    "image": ImageOptions,
    "captioner": CaptionerOptions,
}
"""the options of a model, by `model.kind`"""


DEFAULT_BEAM = 5  # of models whose training has not chosen one
MAX_BEAM, MAX_SAMPLES = 100, 1_000
"""the largest beam, and the most samples of minimum-Bayes-risk decoding, that a recipe may ask of who uses the model"""


@dataclass(frozen=True)
class VocabularyRecipe:
    kind: Literal["subwords", "words"] = "subwords"
    size: int | None = None
    """subwords to learn, besides 256 bytes and 3 special tokens; or the most frequent words to keep, None: all"""
    joint: bool | None = None
    """whether both sides share one vocabulary; None: if they share most of their letters, or with training.glossary"""

    def __post_init__(self) -> None:
        _check_counts("vocabulary", self, "size")


@dataclass(frozen=True)
class TrainingRecipe:
    epochs: int | None = None
    """None: a translator trains for as long as dev improves; other tasks choose by the size of the data"""
    batch_tokens: int | None = None
    """the maximum of source or target tokens in a batch of one process, padding counted"""
    batch_sentences: int | None = None
    """the maximum of pairs in a batch; None: as many as fit"""
    accumulate: int = 1
    """batches whose gradients each process adds up for one update"""
    max_characters: int | None = None
    """lines with a longer side are skipped; None: six times the 95th percentile of the lengths, at least 1,000"""
    max_tokens: int | None = None
    """the same in tokens; None: six times the 95th percentile, at least 400"""
    learning_rate: float | None = None
    """None: 0.003; less for a translation Transformer whose batches have few sentences"""
    warmup: int = 400
    """updates over which the learning rate rises linearly"""
    decay: Literal["cosine", "none"] = "cosine"
    label_smoothing: float = 0.1
    consistency: float | None = None
    """α of consistency training (R-Drop): every batch is read twice, with different dropout, and predictions that
    differ cost this much; 0: read once; None: chosen by model, size of data and device (sizes.py)"""
    masked: float = 0.0
    """the fraction of input tokens that are masked; with consistency training in the second reading only (SimCut)"""
    weight_decay: float = 0.0
    """AdamW: at every update weight matrices are multiplied by 1 − learning rate · weight_decay"""
    clip: float = 1.0
    """the maximum norm of the gradient; 0: no clipping"""
    average: float = 0.999
    """the decay of the moving average of the weights, which is saved as the model; 0: the weights themselves"""
    scheduled_sampling: float = 0.0
    """the fraction of the decoder's inputs that are its own predictions; it rises to this over the run"""
    guided_attention: float = 0.0
    """the weight of the loss term that pulls attention towards the word alignment of the training pairs"""
    guided_next_step: bool = False
    """guide the attention of the next step, which has the word as its input: for models that align, not translate"""
    segmentation_dropout: float = 0.1
    """the fraction of merges that are skipped when text is split into subwords (BPE-dropout)"""
    canonical_segmentation: float = 0.25
    """the fraction of the updates, at the end of a run, in which no merges are skipped; in an open-ended run the decay
    of the learning rate at most"""
    lower_case: float = 0.05
    """the fraction of sources that are lower-cased"""
    no_stop: float = 0.05
    """the fraction of pairs whose final full stops are removed"""
    no_punctuation: float = 0.1
    """the fraction of pairs whose punctuation is removed"""
    placeholders: float = 0.1
    """the fraction of pairs in which placeholders stand for words, for `translate --keep`; of subwords only"""
    glossary: float | bool = 0.0
    """the fraction of pairs whose source shows the translations of some words, for `translate --glossary`; true: 0.3"""
    word_pairs: float = 0.1
    """how many pairs of single words, taken from the pairs, are added at most: a fraction of the pairs"""
    shift: int = 0
    """images: the maximum number of pixels by which they are shifted in training, in each direction"""
    balance: float = 0.0
    """classification: 1 gives all labels the same weight in the loss, 0 all texts; or a value in between"""
    distillation: float = 0.5
    """translation: the weight of the teachers' distributions in the targets, if there are teachers"""
    soft_labels: float = 0.5
    """classification: the weight of soft labels in the loss, if the data have them"""
    replay: float = 4.0
    """tuning: how many old pairs an epoch has for each new one, if there are old ones"""
    pull: float = 0.0
    """tuning: the weight of the pull towards the old weights, half the squared distance, in the loss"""
    max_forgetting: float = 0.5
    """tuning: how many points the score on the old dev part may fall before models that lose more count as worse"""
    validations: int = 12
    patience: int = 5
    """early stopping: after this many validations of the second half without a better score; 0: never"""

    def __post_init__(self) -> None:
        if isinstance(self.glossary, bool):
            object.__setattr__(self, "glossary", FRACTION if self.glossary else 0.0)
        _check_counts("training", self, "epochs", "batch_tokens", "batch_sentences", "validations")
        _check_counts("training", self, "max_characters", "max_tokens", "accumulate")
        whole_number("training", "shift", self.shift)
        if self.learning_rate is not None:
            positive("training", "learning_rate", self.learning_rate)
        for name in (
            "label_smoothing",
            "average",
            "masked",
            "segmentation_dropout",
            "canonical_segmentation",
            "lower_case",
            "no_stop",
            "no_punctuation",
            "placeholders",
            "glossary",
            "word_pairs",
        ):
            fraction(f"training.{name}", getattr(self, name))
        for name in ("balance", "scheduled_sampling", "distillation", "soft_labels"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"training.{name}: expected a fraction in [0, 1], got {getattr(self, name)}")
        for name in ("consistency", "guided_attention", "weight_decay", "replay", "pull", "max_forgetting"):
            if getattr(self, name) is not None and not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"training.{name}: expected a number of at least 0, got {getattr(self, name)}")

    @property
    def batch_given(self) -> bool:
        """whether the user set the batch size"""
        return self.batch_tokens is not None or self.batch_sentences is not None

    @property
    def peak_learning_rate(self) -> float:
        """the highest learning rate"""
        return sizes.LEARNING_RATE if self.learning_rate is None else self.learning_rate


@dataclass(frozen=True)
class SearchRecipe:
    beam: int | None = None
    """1: greedy search; None: chosen on dev when training ends"""
    length_penalty: float | None = None
    """hypotheses are ranked by log p / length^penalty; None: chosen on dev when training ends"""
    mbr: int = 0
    """minimum-Bayes-risk decoding with so many samples; 0: beam search"""

    def __post_init__(self) -> None:
        _check_counts("search", self, "beam")
        whole_number("search", "mbr", self.mbr)
        for name, limit in (("beam", MAX_BEAM), ("mbr", MAX_SAMPLES)):
            value = getattr(self, name)
            if value is not None and value > limit:
                raise ValueError(f"search.{name}: expected at most {limit:,}, got {value:,}")
        if self.length_penalty is not None and not 0 <= self.length_penalty <= 100:
            raise ValueError(f"search.length_penalty: expected a number from 0 to 100, got {self.length_penalty}")


@dataclass(frozen=True)
class Recipe:
    name: str = "rnn"
    vocabulary: VocabularyRecipe = field(default_factory=VocabularyRecipe)
    model: ModelOptions = field(default_factory=RecurrentOptions)
    training: TrainingRecipe = field(default_factory=TrainingRecipe)
    search: SearchRecipe = field(default_factory=SearchRecipe)

    def fitted(self, pairs: int, words: float, shared_letters: float) -> Recipe:
        """Return the recipe with every open value chosen from the data, except those of the search; consistency
        training, which depends on the device too, is off if it is still open.

        pairs            number of training pairs
        words            mean number of words of a sentence
        shared_letters   the fraction of the target's letters that occur in the sources
        """
        if not isinstance(self.model, (RecurrentOptions, TransformerOptions)):
            raise ValueError(f"recipe: {self.name!r} makes no translator; expected another --task with it")
        subwords = self.vocabulary.kind == "subwords"
        # A source that shows terms has both languages in it.
        alike = shared_letters > 0.5 or self.training.glossary > 0
        joint = self.vocabulary.joint if self.vocabulary.joint is not None else subwords and alike
        size = self.vocabulary.size or (sizes.vocabulary_size(pairs, joint) if subwords else None)
        training = self.training
        sentences = self.model.batch_sentences(pairs)
        tokens = training.batch_tokens or (10**9 if training.batch_sentences else sizes.tokens(sentences, words))
        if training.batch_given:
            sentences = training.batch_sentences or round(tokens / (2 * max(words, 1)))
        rate = round(sizes.LEARNING_RATE * self.model.rate_factor(min(1.0, sentences / sizes.FULL_BATCH)), 5)
        return replace(
            self,
            vocabulary=replace(self.vocabulary, joint=joint, size=size),
            model=_fitted_model(self.model, pairs, joint),
            training=replace(
                training,
                batch_tokens=tokens,
                learning_rate=training.learning_rate or rate,
                consistency=training.consistency or 0.0,
            ),
        )


def _fitted_model(
    options: RecurrentOptions | TransformerOptions, pairs: int, joint: bool
) -> RecurrentOptions | TransformerOptions:
    if joint and options.tie == "target":
        options = replace(options, tie="all")
    if isinstance(options, TransformerOptions) and options.dropout is None:
        # With less dropout little data is learned by heart, with more it is learned slowly (docs/results.md).
        return replace(options, dropout=SMALL_CORPUS_DROPOUT if pairs < sizes.SMALL_CORPUS else DROPOUT)
    return options


def _check_counts(section: str, part: object, *names: str) -> None:
    """Raise a ValueError unless each of these fields is a whole number of at least 1, or None."""
    for name in names:
        if getattr(part, name) is not None:
            whole_number(section, name, getattr(part, name), minimum=1)


ARTICLE = Recipe(
    name="article",
    vocabulary=VocabularyRecipe(kind="words", joint=False),
    model=RecurrentOptions(
        embedding=256,
        encoder=1024,
        bidirectional=False,
        decoder=1024,
        order="bahdanau",
        attention=1024,
        tie="none",
        dropout=0.0,
    ),
    training=TrainingRecipe(
        epochs=10,
        batch_sentences=64,
        learning_rate=0.001,
        warmup=0,
        decay="none",
        label_smoothing=0.0,
        consistency=0.0,
        clip=0.0,
        average=0.0,
        segmentation_dropout=0.0,
        lower_case=0.0,
        no_stop=0.0,
        no_punctuation=0.0,
        placeholders=0.0,
        word_pairs=0.0,
        validations=10,
        patience=0,
    ),
    search=SearchRecipe(beam=1),
)
TRANSFORMER = Recipe(name="transformer", model=TransformerOptions(), training=TrainingRecipe(warmup=600))
NO_SEARCH = SearchRecipe(beam=DEFAULT_BEAM, length_penalty=1.0)  # of tasks that choose none
CLASSIFY = Recipe(
    name="classify",
    vocabulary=VocabularyRecipe(kind="words"),
    model=ClassifierOptions(),
    training=TrainingRecipe(
        learning_rate=0.002,
        warmup=100,
        weight_decay=0.01,
        segmentation_dropout=0.0,
        lower_case=0.0,
        no_stop=0.0,
        no_punctuation=0.0,
        placeholders=0.0,
        word_pairs=0.0,
        patience=0,
    ),
    search=NO_SEARCH,
)
IMAGES = Recipe(
    name="images",
    model=ImageOptions(),
    training=TrainingRecipe(learning_rate=0.002, warmup=100, weight_decay=0.01, average=0.99, patience=0),
    search=NO_SEARCH,
)
CAPTIONS = Recipe(
    name="captions",
    vocabulary=VocabularyRecipe(kind="words"),
    model=CaptionerOptions(),
    training=TrainingRecipe(learning_rate=0.002, warmup=200, label_smoothing=0.05, average=0.99, patience=0),
    search=NO_SEARCH,
)
RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe for recipe in (Recipe(), TRANSFORMER, ARTICLE, CLASSIFY, IMAGES, CAPTIONS)
}
