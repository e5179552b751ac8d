"""Regard: attention you can train, use and look into."""

from regard import started as _started  # noqa: F401  # isort: skip  first: it notes the time before torch is imported
from regard.classifier import Classifier
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
from regard.core.patterns import Causal, Dilated, Full, Pattern, Strided, Window, per_head
from regard.core.pool import Pool
from regard.core.representations import Representations
from regard.core.result import Result, Top
from regard.core.scores import Additive, Cosine, Dot, General, ScaledDot, Score
from regard.loading import load
from regard.training.train import train
from regard.translator import Translator

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "Attention",
    "Blocks",
    "Causal",
    "Classifier",
    "Cosine",
    "Dilated",
    "Dot",
    "Entmax",
    "Entmax15",
    "FeatureAdditive",
    "FeaturePool",
    "FeatureTanh",
    "Featurewise",
    "Full",
    "General",
    "Global",
    "Grid",
    "Hard",
    "LocalMonotonic",
    "LocalPredictive",
    "Memory",
    "MultiHead",
    "Normalizer",
    "Pattern",
    "Pool",
    "RandomBlocks",
    "Representations",
    "Result",
    "ScaledDot",
    "Score",
    "Softmax",
    "Sparsemax",
    "Strided",
    "Top",
    "Translator",
    "Window",
    "attention",
    "bigbird",
    "coattend",
    "featurewise",
    "load",
    "longformer",
    "parse_pattern",
    "per_head",
    "plan",
    "train",
]
