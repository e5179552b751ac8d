"""A recipe: everything that decides what a training run computes, as a typed tree.

Six come with the package: `rnn`, `transformer`, `article` (the word-level English–Marathi tutorial), `classify`,
`images` and `captions`; others come from TOML files. What a recipe leaves open (None) is chosen from the size of the
data, so that a saved recipe says it all.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from regard.config import sizes
from regard.core.checks import positive, share, whole_number
from regard.models.building import ModelOptions, check
from regard.models.documents.classifier import ClassifierOptions
from regard.models.images.captioner import CaptionerOptions
from regard.models.images.model import ImageOptions
from regard.models.recurrent.model import RecurrentOptions
from regard.models.transformer.model import DROPOUT, TransformerOptions

KINDS: Mapping[str, type[ModelOptions]] = {
    "rnn": RecurrentOptions,
    "transformer": TransformerOptions,
    "classifier": ClassifierOptions,
    "image": ImageOptions,
    "captioner": CaptionerOptions,
}
"""`model.kind` says which"""


class UnknownKeyError(ValueError):
    """A setting that a recipe does not have."""


@dataclass(frozen=True)
class VocabularyRecipe:
    kind: Literal["subwords", "words"] = "subwords"
    size: int | None = None
    """tokens of each vocabulary; words: None keeps all"""
    joint: bool | None = None
    """one vocabulary for both sides; None: if they share most of their letters"""

    def __post_init__(self) -> None:
        _counts("vocabulary", self, "size")


@dataclass(frozen=True)
class TrainingRecipe:
    epochs: int | None = None
    batch_tokens: int | None = None
    """at most this many source or target tokens a batch, padding counted"""
    batch_sentences: int | None = None
    """at most this many pairs a batch; None: as many as fit"""
    max_characters: int | None = None
    """lines with a longer side are skipped; None: six times as long as 95 % of the lines are, at least 1,000"""
    max_tokens: int | None = None
    """the same in tokens; None: six times as many as 95 % of the lines have, at least 400"""
    learning_rate: float | None = None
    """None: 0.003; of a translator with a Transformer less, where batches have few sentences"""
    warmup: int = 400
    """updates over which the learning rate rises"""
    decay: Literal["cosine", "none"] = "cosine"
    label_smoothing: float = 0.1
    weight_decay: float = 0.0
    """the share of the learning rate by which weight matrices shrink at every update"""
    clip: float = 1.0
    """the largest norm of a gradient; 0: any"""
    average: float = 0.999
    """decay of the running average of the weights, which is what is kept as the model; 0: the weights themselves"""
    scheduled_sampling: float = 0.0
    """the share of the decoder's inputs that are its own predictions, reached step by step at the end"""
    guided_attention: float = 0.0
    """how much it counts, beside the loss, that attention looks where links computed from the pairs say"""
    guided_later: bool = False
    """of guided attention: one step later, once a word is said, for a model that is to align, not to translate"""
    segmentation_dropout: float = 0.1
    """the share of merges left out when subwords are cut (BPE-dropout)"""
    lower_case: float = 0.05
    """the share of sources met in lower case"""
    no_stop: float = 0.05
    """the share of pairs met without their final full stops"""
    shift: int = 0
    """of images: in training they are moved by up to this many pixels, each way"""
    balance: float = 0.0
    """of classification: 1 lets all labels count the same however rare they are, 0 all texts; or between"""
    validations: int = 12
    patience: int = 5
    """stop after this many validations of the second half without a better score; 0: never"""

    def __post_init__(self) -> None:
        _counts("training", self, "epochs", "batch_tokens", "batch_sentences", "validations")
        _counts("training", self, "max_characters", "max_tokens")
        whole_number("training", "shift", self.shift)
        if self.learning_rate is not None:
            positive("training", "learning_rate", self.learning_rate)
        for name in ("label_smoothing", "average", "segmentation_dropout", "lower_case", "no_stop"):
            share(f"training.{name}", getattr(self, name))
        if not 0 <= self.balance <= 1:
            raise ValueError(f"training.balance: expected a share in [0, 1], got {self.balance}")
        for name in ("guided_attention", "weight_decay"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"training.{name}: expected a number of at least 0, got {getattr(self, name)}")
        if not 0 <= self.scheduled_sampling <= 1:
            raise ValueError(f"training.scheduled_sampling: expected a share in [0, 1], got {self.scheduled_sampling}")

    @property
    def peak(self) -> float:
        """the learning rate at its highest"""
        return sizes.LEARNING_RATE if self.learning_rate is None else self.learning_rate


@dataclass(frozen=True)
class SearchRecipe:
    beam: int = 5
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        _counts("search", self, "beam")
        if not 0 <= self.length_penalty <= 100:
            raise ValueError(f"search.length_penalty: expected a number from 0 to 100, got {self.length_penalty}")


@dataclass(frozen=True)
class Recipe:
    name: str = "rnn"
    vocabulary: VocabularyRecipe = field(default_factory=VocabularyRecipe)
    model: ModelOptions = field(default_factory=RecurrentOptions)
    training: TrainingRecipe = field(default_factory=TrainingRecipe)
    search: SearchRecipe = field(default_factory=SearchRecipe)

    def fitted(self, pairs: int, words: float, shared_letters: float) -> Recipe:
        """With nothing left open: from how many pairs there are, how many words a sentence has, and what share of
        their letters the two sides share."""
        if not isinstance(self.model, (RecurrentOptions, TransformerOptions)):
            raise ValueError(f"recipe: {self.name!r} makes no translator; expected another --task with it")
        subwords = self.vocabulary.kind == "subwords"
        joint = self.vocabulary.joint if self.vocabulary.joint is not None else subwords and shared_letters > 0.5
        size = self.vocabulary.size or (sizes.vocabulary_size(pairs, joint) if subwords else None)
        training = self.training
        sentences = sizes.batch_sentences(pairs, self.model.kind)
        tokens = training.batch_tokens or (10**9 if training.batch_sentences else sizes.tokens(sentences, words))
        # A Transformer needs more epochs; and smaller steps, the fewer sentences they are made from.
        transformer = self.model.kind == "transformer"
        epochs = training.epochs or (2 if transformer else 1) * sizes.epochs(pairs)
        if training.batch_sentences or training.batch_tokens:
            sentences = training.batch_sentences or round(tokens / (2 * max(words, 1)))
        rate = sizes.learning_rate(sentences) if transformer else sizes.LEARNING_RATE
        return replace(
            self,
            vocabulary=replace(self.vocabulary, joint=joint, size=size),
            model=_fitted_model(self.model, pairs, joint),
            training=replace(
                training, epochs=epochs, batch_tokens=tokens, learning_rate=training.learning_rate or rate
            ),
        )


def _fitted_model(
    options: RecurrentOptions | TransformerOptions, pairs: int, joint: bool
) -> RecurrentOptions | TransformerOptions:
    if joint and options.tie == "target":
        options = replace(options, tie="all")
    if isinstance(options, TransformerOptions) and options.dropout is None:
        # A run on little data is mostly short: less dropout learned more in the same minutes (docs/results.md).
        return replace(options, dropout=0.1 if pairs < sizes.FEW else DROPOUT)
    return options


def _counts(section: str, part: object, *names: str) -> None:
    """Each is a whole number of at least 1, or left open."""
    for name in names:
        if getattr(part, name) is not None:
            whole_number(section, name, getattr(part, name), least=1)


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
        clip=0.0,
        average=0.0,
        segmentation_dropout=0.0,
        lower_case=0.0,
        no_stop=0.0,
        validations=10,
        patience=0,
    ),
    search=SearchRecipe(beam=1),
)
TRANSFORMER = Recipe(
    name="transformer",
    model=TransformerOptions(),
    training=TrainingRecipe(warmup=600),
)
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
        patience=0,
    ),
)
IMAGES = Recipe(
    name="images",
    model=ImageOptions(),
    training=TrainingRecipe(learning_rate=0.002, warmup=100, weight_decay=0.01, average=0.99, patience=0),
)
CAPTIONS = Recipe(
    name="captions",
    vocabulary=VocabularyRecipe(kind="words"),
    model=CaptionerOptions(),
    training=TrainingRecipe(learning_rate=0.002, warmup=200, label_smoothing=0.05, average=0.99, patience=0),
)
RECIPES: Mapping[str, Recipe] = {
    recipe.name: recipe for recipe in (Recipe(), TRANSFORMER, ARTICLE, CLASSIFY, IMAGES, CAPTIONS)
}


def suited(settings: Mapping[str, Any] | None = None, best: str = "rnn") -> Recipe:
    """Where no recipe is named: the best of rnn and transformer, or the other, if settings can only be made in that."""
    refused: list[ValueError] = []
    for name in sorted(("rnn", "transformer"), key=lambda name: name != best):
        try:
            return read_recipe(name, settings)
        except ValueError as error:
            refused.append(error)
    # A recipe that knows all the keys has more to say about their values than one that does not.
    raise next((error for error in refused if not isinstance(error, UnknownKeyError)), refused[0])


def read_recipe(given: str | Path | Recipe, settings: Mapping[str, Any] | None = None) -> Recipe:
    """A recipe by name, from a TOML file, or as it is; with single values set, such as {"training.epochs": 5}."""
    if isinstance(given, Recipe):
        recipe = given
    elif str(given) in RECIPES:
        recipe = RECIPES[str(given)]
    elif str(given).endswith(".toml"):
        recipe = from_toml(_text(Path(given)), str(given))
    else:
        raise ValueError(
            f"recipe: expected {', '.join(RECIPES)} or a .toml file, got {str(given)!r}{_near(str(given), RECIPES)}"
        )
    for key, value in (settings or {}).items():
        recipe = _set(recipe, key, value)
    try:
        check(recipe.model)
    except ValueError as error:
        raise ValueError(f"recipe: model: {error}") from None
    return recipe


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"recipe: {path}: expected TOML, which is UTF-8, and this is not") from None
    except OSError as error:
        raise ValueError(f"recipe: cannot read {path}: {error.strerror}") from None


def from_toml(text: str, name: str = "recipe") -> Recipe:
    """What `to_toml` wrote, or any part of it; what is missing is as in `rnn`."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name}: not TOML: {error}") from None
    base = tree.pop("base", "rnn")
    if not isinstance(base, str) or base not in RECIPES:
        raise ValueError(f"{name}: base: expected {', '.join(RECIPES)}, got {base!r}")
    recipe = RECIPES[base]
    given = _flat(tree)
    for path in sorted(given, key=lambda path: path != "model.kind"):  # which decides what else there can be
        recipe = _set(recipe, path, given[path])
    return recipe


def _flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """{"model.dropout": 0.3, …}"""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= _flat(value, f"{above}{key}.") if isinstance(value, dict) else {above + key: value}
    return found


def to_toml(recipe: Recipe) -> str:
    """The whole tree; what is open is left out."""
    return "\n".join(_table(recipe, "")).strip("\n") + "\n"


def _table(part: Any, path: str) -> list[str]:
    """A dataclass as a table of TOML, with those inside of it behind its values."""
    values = {item.name: getattr(part, item.name) for item in dataclasses.fields(part)}
    inner = {name: value for name, value in values.items() if dataclasses.is_dataclass(value)}
    lines = ["", f"[{path}]"] if path else []
    lines += [
        f"{name} = {_toml_value(value)}" for name, value in values.items() if name not in inner and value is not None
    ]
    for name, value in inner.items():
        lines += _table(value, f"{path}.{name}" if path else name)
    return lines


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


def _set(recipe: Recipe, path: str, value: Any) -> Recipe:
    """The recipe with one value changed; a text is read as what is expected there. `encoder.x` is `model.encoder.x`."""
    parts = path.split(".")
    sections = [item.name for item in dataclasses.fields(Recipe) if item.name != "name"]
    if parts[0] not in [*sections, "name"] and dataclasses.is_dataclass(getattr(recipe.model, parts[0], None)):
        parts.insert(0, "model")
    if parts == ["model", "kind"]:
        kind = _read_value(path, value, Literal[tuple(KINDS)])
        return recipe if recipe.model.kind == kind else replace(recipe, model=KINDS[kind]())
    if parts != ["name"] and (parts[0] not in sections or len(parts) < 2):
        every = _flat(dataclasses.asdict(recipe))
        ends = {name.rpartition(".")[2]: name for name in every}
        near = ends.get(path) or next(iter(difflib.get_close_matches(path, every, 1)), "")
        raise UnknownKeyError(f"recipe: unknown key {path!r}" + (f"; did you mean {near!r}?" if near else ""))
    changed: Recipe = _put(recipe, parts, value, "")
    return changed


def _put(part: Any, parts: list[str], value: Any, above: str) -> Any:
    """The dataclass with the value at the end of the path changed."""
    kinds, (key, *rest) = typing.get_type_hints(type(part)), parts
    path = above + ".".join(parts)
    inner = getattr(part, key, None)
    if key not in kinds or dataclasses.is_dataclass(inner) != bool(rest):
        raise UnknownKeyError(f"recipe: unknown key {path!r}{_near(key, kinds, above)}")
    if rest:
        return replace(part, **{key: _put(inner, rest, value, f"{above}{key}.")})
    return replace(part, **{key: _read_value(path, value, kinds[key])})


def _near(given: str, known: Mapping[str, Any], prefix: str = "") -> str:
    near = difflib.get_close_matches(given, known, 1)
    return f"; did you mean {prefix + near[0]!r}?" if near else ""


def _read_value(path: str, value: Any, kind: Any) -> Any:
    """A value of the type that the tree has there."""
    if isinstance(kind, types.UnionType):
        kind = next(option for option in typing.get_args(kind) if option is not type(None))
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            raise ValueError(f"recipe: {path}: expected {' or '.join(map(repr, choices))}, got {value!r}")
        return value
    wanted = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[kind]
    refused = ValueError(f"recipe: {path}: expected {wanted}, got {value!r}")
    if kind is bool:
        found = {"true": True, "false": False}.get(str(value).lower())
        if found is None:
            raise refused
        return found
    if isinstance(value, bool) or (kind is int and isinstance(value, float)):
        raise refused
    try:
        read = kind(value)
    except (TypeError, ValueError):
        raise refused from None
    if kind is not str and (not -1e12 < read < 1e12 or read < 0):
        raise ValueError(f"recipe: {path}: expected {wanted} of at least 0, got {value!r}")
    return read
