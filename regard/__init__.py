"""Regard: attention you can train, use and look into.

Names are imported at their first use, together with PyTorch, so that the command line starts quickly.
"""

from regard.runtime import started as _started  # noqa: F401  # isort: skip  first: it records the time before anything else is imported

from importlib import import_module
from typing import TYPE_CHECKING

from regard.runtime.caches import cached as _cached
from regard.runtime.version import __version__ as __version__

if TYPE_CHECKING:
    from regard.alignment.statistical import AlignmentResult, align
    from regard.batch.join import join_shards
    from regard.batch.on_ray import on_ray
    from regard.batch.run import ShardReport, translate_file
    from regard.core.attention import Attention, attention, plan
    from regard.core.block_patterns import Blocks, Global, RandomBlocks, bigbird, longformer
    from regard.core.coattention import coattend
    from regard.core.featurewise import FeatureAdditive, FeaturePool, FeatureTanh, Featurewise, featurewise
    from regard.core.grid_patterns import Grid
    from regard.core.local import LocalMonotonic, LocalPredictive
    from regard.core.memory import Memory
    from regard.core.multihead import MultiHead
    from regard.core.normalizers import Entmax, Entmax15, Hard, Normalizer, Softmax, Sparsemax
    from regard.core.pattern_text import parse as parse_pattern
    from regard.core.patterns import Causal, Full, Pattern, Window, per_head
    from regard.core.pool import Pool
    from regard.core.representations import Representations
    from regard.core.result import Result, Top
    from regard.core.scores import Additive, Cosine, Dot, General, ScaledDot, Score
    from regard.core.strided_patterns import Dilated, Strided
    from regard.experiments.best.train import train_best
    from regard.experiments.compare.comparison import Comparison
    from regard.experiments.compare.run import compare
    from regard.tasks.captioning.predictor import Captioner
    from regard.tasks.classification.predictor import Classifier
    from regard.tasks.from_card import train_from_card
    from regard.tasks.images.data import CaptionedImages, Images
    from regard.tasks.images.predictor import ImageClassifier
    from regard.tasks.registry import load
    from regard.tasks.train import train
    from regard.tasks.translation.predictor import Translator
    from regard.tasks.tune import tune
    from regard.text.weighted import Weighted

__all__ = ["Attention", "Memory", "MultiHead", "Representations", "Result", "Top", "attention", "coattend", "plan"]
__all__ += ["Additive", "Cosine", "Dot", "General", "ScaledDot", "Score"]
__all__ += ["Entmax", "Entmax15", "Hard", "Normalizer", "Softmax", "Sparsemax"]
__all__ += ["Blocks", "Causal", "Dilated", "Full", "Global", "Grid", "LocalMonotonic", "LocalPredictive", "Pattern"]
__all__ += ["RandomBlocks", "Strided", "Window", "bigbird", "longformer", "parse_pattern", "per_head"]
__all__ += ["FeatureAdditive", "FeaturePool", "FeatureTanh", "Featurewise", "Pool", "featurewise"]
__all__ += ["CaptionedImages", "Captioner", "Classifier", "ImageClassifier", "Images", "Translator", "load", "train"]
__all__ += ["train_from_card", "tune"]
__all__ += ["Comparison", "Weighted", "compare", "train_best"]
__all__ += ["AlignmentResult", "align"]
__all__ += ["ShardReport", "join_shards", "on_ray", "translate_file"]


if not TYPE_CHECKING:  # a type checker knows the names from above

    def __getattr__(name: str) -> object:
        """Import a name of the package, or one of its modules, at its first use."""
        value = globals()[name] = _imported(name)
        return value

    def _imported(name: str) -> object:
        """Return the value of a public name, or a module of the package."""
        if name in __all__:
            module, defined_as = _definitions()[name]
            return getattr(import_module(module), defined_as)
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None

    @_cached(maxsize=1, reason="parsing this file takes milliseconds, for each name at its first use")
    def _definitions() -> dict[str, tuple[str, str]]:
        """Return the module and the name there of each public name, from the imports above."""
        import ast
        import inspect
        import sys

        source = inspect.getsource(sys.modules[__name__])
        imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
        return {each.asname or each.name: (node.module, each.name) for node in imports for each in node.names}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
