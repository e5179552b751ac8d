"""The task `translate`: what `train`, `load` and the commands ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from regard.config import folder as folders
from regard.config.recipe import Recipe
from regard.config.recipe_text import default_translation_recipe
from regard.config.sizes import Budget, best_model_kind, default_consistency
from regard.corpora.corpus import StoredPairs
from regard.evidence.of_translation import examined
from regard.look.diagnostics import diagnose, overall
from regard.look.trace import Trace
from regard.metrics.confidence import confidence_report
from regard.metrics.translation import Scores, group, score
from regard.models.building import ModelOptions, build
from regard.models.ensemble import EnsembleModel
from regard.models.recurrent.model import RecurrentOptions
from regard.models.transformer.model import TransformerOptions
from regard.runtime.distributed import ALONE, World
from regard.runtime.precision import Precision
from regard.tasks.spec import EvaluationOptions, Given, Loaded, TaskSpec, TimeLimit, TrainingData
from regard.tasks.text_data import Pairs, read_corpus, read_text_data, with_extra
from regard.tasks.translation.answer import Answer
from regard.tasks.translation.calibration import calibrated_confidence, rated_sentences, rated_words
from regard.tasks.translation.distillation import PairsWithTeacher, Teacher
from regard.tasks.translation.final_scoring import ScoringEffort, final_results, sources_in_time
from regard.tasks.translation.large_corpora import is_large, large_task, read_large, with_extra_pairs
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.task import TranslationTask, TunedModel, mean_words
from regard.text.pairs import Corpus, Pair, read_pairs, read_references
from regard.text.split import shared_targets
from regard.training.progress import Screen
from regard.training.task import evenly_spaced

SHOWN = 20  # sentences that a diagnosis lists
WORDS_SAMPLE = 10_000  # pairs of a corpus on disk whose words are counted


class TranslationSpec(TaskSpec[Translator, Pairs]):
    name = command = "translate"
    noun = "translator"
    default_recipe = "rnn"
    options = (RecurrentOptions, TransformerOptions)
    task_class = TranslationTask
    tuned_score = "chrf"

    def recipe(self, given: str | Path | Recipe | None, settings: Mapping[str, Any] | None) -> Recipe:
        return default_translation_recipe(settings) if given is None else super().recipe(given, settings)

    def recipe_for(
        self, settings: Mapping[str, Any] | None, data: TrainingData[Pairs], budget: Budget, begun: Recipe | None
    ) -> Recipe:
        if begun is not None:
            return default_translation_recipe(settings, begun.model.kind)
        words = mean_words(_in_memory(data.train))
        return default_translation_recipe(settings, best_model_kind(len(data.train), words, budget))

    def completed(self, recipe: Recipe, examples: int, budget: Budget, begun: Recipe | None) -> Recipe:
        if recipe.training.consistency is not None:
            return recipe
        weight = (
            default_consistency(recipe.model.kind, examples, budget) if begun is None else begun.training.consistency
        )
        return replace(recipe, training=replace(recipe.training, consistency=weight))

    def check_given(self, given: Given) -> None:
        """Accept all options."""

    def read(self, given: Given) -> Callable[[Sequence[Path]], Corpus]:
        return partial(read_pairs, reverse=given.reverse, languages=given.languages)

    def data(self, given: Given, recipe: Recipe, screen: Screen) -> TrainingData[Pairs]:
        read = self.read(given)
        limit, large = recipe.training.max_characters, is_large(given)
        data = read_large(given, read, limit, screen) if large else read_text_data(given, read, _summary, limit, screen)
        if given.extra is not None:
            extra = read_corpus(given.extra, False, self.read(replace(given, reverse=False)))
            data = with_extra_pairs(data, extra, screen) if large else with_extra(data, extra, screen)
        if not given.teachers:
            return data
        if large:
            raise ValueError("teachers: expected none with a corpus that is not read into memory")
        teacher = self._teacher([Path(each) for each in given.teachers])
        screen.say(f"taught by {', '.join(map(str, given.teachers))}")
        return PairsWithTeacher.of(data, teacher)

    def _teacher(self, places: Sequence[Path]) -> Teacher:
        """Return the teacher that the translators of these folders make together."""
        return Teacher.of(self.ensemble(self.load(places[0], "cpu", "auto"), places[1:]))

    def task(self, data: TrainingData[Pairs], recipe: Recipe, seed: int) -> TranslationTask:
        recipe = data.recipe(recipe)
        if isinstance(data.train, StoredPairs):
            return large_task(data, recipe, seed)
        teacher = data.teacher if isinstance(data, PairsWithTeacher) else None
        return TranslationTask.of(data.train, data.dev, recipe, seed, data.extra or (), data.weights, teacher=teacher)

    def tuned_task(self, model: Translator, data: TrainingData[Pairs], recipe: Recipe, seed: int) -> TranslationTask:
        assert not isinstance(model.model, EnsembleModel)
        tuned = TunedModel(model.model, model.vocabularies, model.limit, model.longest_source, model.several_sentences)
        return TranslationTask.of(data.train, data.dev, data.recipe(recipe), seed, (), data.weights, tuned)

    def predictor(self, folder: Path, options: ModelOptions, loaded: Loaded) -> Translator:
        vocabularies = folders.read_vocabularies(folder)
        model = build(options, len(vocabularies.source), len(vocabularies.target))
        return Translator(model, *loaded, vocabularies, str(folder))

    def score(
        self,
        model: Translator,
        dev: Pairs,
        say: Callable[[str], None],
        time: TimeLimit | None = None,
        world: World = ALONE,
    ) -> Scores:
        """Score a model on dev; before, choose its beam size and length penalty there if the recipe leaves them open.
        Its confidence is calibrated on the same translations. If time is short, some of dev must do."""
        sources, references = group(dev)
        effort, given = ScoringEffort.within(None if time is None else time.limit), model.recipe.search
        if time is not None and time.left is not None and model.device.type == "cpu":
            effort = replace(effort, deadline=monotonic() + time.left)
            fitting = sources_in_time(model, sources, references, time.limit, time.left, world)
            if fitting < len(sources):
                say(f"time is short: {fitting:,} of {len(sources):,} dev sources are scored, evenly spaced")
                rows = evenly_spaced(len(sources), fitting)
                sources, references = [sources[row] for row in rows], [references[row] for row in rows]
        results = final_results(model, sources, references, effort, world)
        search = replace(given, beam=results.beam, length_penalty=results.length_penalty)
        model.recipe = replace(model.recipe, search=search)
        if results.choice is not None:
            tried = {
                str(beam): {str(penalty): value for penalty, value in by_penalty.items()}
                for beam, by_penalty in results.choice.chrf.items()
            }
            model.card |= {"search": {"chrf": tried}}
            chosen = [f"search.beam = {results.beam}"] if len(tried) > 1 else []
            chosen += [f"search.length_penalty = {results.length_penalty}"] if given.length_penalty is None else []
            if chosen:
                say(f"{', '.join(chosen)}, chosen by chrF++ on dev")
        model.card |= {} if results.confidence is None else {"confidence": results.confidence}
        return results.scores

    def is_same_run(self, begun: Recipe, asked: Recipe) -> bool:
        """Return whether both recipes are equal; a beam size or length penalty that is left open is equal to any,
        because the end of the run chooses one."""
        left_open: dict[str, Any] = {
            name: None for name in ("beam", "length_penalty") if getattr(asked.search, name) is None
        }
        return replace(begun, search=replace(begun.search, **left_open)) == asked

    def ensemble(self, first: Translator, others: Sequence[Path]) -> Translator:
        """Return the ensemble of a translator with those of other folders; the translator itself if there are none."""
        places = [Path(first.name).resolve(), *(folder.resolve() for folder in others)]
        for folder, place in zip(others, places[1:], strict=True):
            if places.count(place) > 1:
                raise ValueError(f"ensemble: expected different models, got {folder} twice")
            task = folders.read_card(folder)["task"]
            if task != self.name:
                raise ValueError(f"{folder}: expected a {self.noun}, got a model of the task {task!r}")
        members = [self.load(folder, str(first.device), first.precision) for folder in others]
        return first.ensemble(*members) if members else first

    def evaluate(
        self, folder: Path, files: Sequence[Path], options: EvaluationOptions, device: str | None, precision: Precision
    ) -> tuple[dict[str, Any], list[str]]:
        options.refuse(["calibrated"], "--calibrated is for classifiers, and this is a translator")
        sources, references = group(read_references(files, options.reverse, options.languages))
        translator = self.ensemble(self.load(folder, device, precision), options.ensemble)
        given = {name: value for name in ("beam", "mbr") if (value := getattr(options, name)) is not None}
        search = replace(translator.search, **given)
        answers = translator.answers(sources, search, confidence=options.confidence)
        scores = score([answer.text for answer in answers], references)
        result, lines = scores.as_dict(), scores.lines()
        if options.confidence:
            report = confidence_report(rated_sentences(translator, answers, references))
            result |= {"confidence": report.as_dict()}
            lines += ["", *report.lines()]
        if options.diagnose is not None:
            shown = SHOWN if options.show is None else options.show
            diagnosis, diagnosis_lines = _diagnosis(answers, options.diagnose, shown)
            result |= diagnosis
            lines += ["", *diagnosis_lines]
        return result, lines

    def calibrate(
        self,
        folder: Path,
        files: Sequence[Path],
        reverse: bool,
        languages: tuple[str, str] | None,
        device: str | None,
        precision: Precision,
    ) -> dict[str, Any]:
        """Calibrate the confidence of a folder's model on files, write it into the card, and return its entry."""
        sources, references = group(read_references(files, reverse, languages))
        translator = self.load(folder, device, precision)
        if "scores" not in translator.card:
            raise ValueError(f"{folder}: expected a model whose training has ended")
        parts = [answer.translations[0].parts for answer in translator.answers(sources)]
        data = ", ".join(file.name for file in files)
        entry = calibrated_confidence(rated_words(translator, parts, references), data)
        if entry is None:
            raise ValueError(f"{data}: its translations have no words; expected texts to calibrate on")
        folders.write_card(folder, folders.read_card(folder) | {"confidence": entry})
        return entry

    def examine(self, model: Translator, trace: Trace) -> Trace:
        return examined(model, trace)


def _summary(train: Pairs, dev: Pairs) -> str:
    """Return how many pairs there are, in a sentence."""
    shared = shared_targets(train, dev)
    counts = f"{len(train):,} pairs for training, {len(dev):,} for validation"
    return f"{counts} ({shared:,} dev targets occur in training)"


def _diagnosis(answers: Sequence[Answer], measure: str, show: int) -> tuple[dict[str, Any], list[str]]:
    """Return the diagnosis (for JSON, as lines): of all sentences together, then of each part, the oddest first."""
    diagnoses = [(trace, diagnose(trace)) for answer in answers for trace in answer.translations[0].traces]
    if not diagnoses:
        return {"diagnosis": {"overall": None, "sentences": []}}, ["no text came to diagnose"]
    diagnoses.sort(key=lambda each: -each[1].measure(measure))
    summary = overall([each for _, each in diagnoses])
    sentences = [
        {"source": trace.source.text, "translation": trace.target.text, **asdict(each)} for trace, each in diagnoses
    ]
    odd = [(trace, each) for trace, each in diagnoses if each.measure(measure) > 0]
    lines = [*summary.lines(), "", f"the oddest by {measure}:" if odd else f"none is odd by {measure}"]
    for trace, each in odd[:show]:
        words = each.missed if measure == "missed" else each.repeated if measure == "repeated" else []
        note = ", ".join(words) or f"{each.measure(measure):.2f}"
        lines.append(f"{note}\t{trace.source.text}\t{trace.target.text}")
    return {"diagnosis": {"overall": asdict(summary), "sentences": sentences}}, lines


def _in_memory(pairs: Pairs) -> Sequence[Pair]:
    """Return the pairs, or a sample of a corpus on disk."""
    return pairs.pairs(pairs.sample(WORDS_SAMPLE)) if isinstance(pairs, StoredPairs) else pairs
