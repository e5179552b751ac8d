"""Word alignment: statistical links, links from attention weights, symmetrization, and the alignment error rate."""

from regard.alignment.aligner import AlignmentOptions, align_by_attention
from regard.alignment.error_rate import ErrorRate, error_rate
from regard.alignment.extract import combine, links_of, token_weights
from regard.alignment.links import Gold, parse_gold, parse_links, read_gold, read_links, write_links
from regard.alignment.projection import Projection
from regard.alignment.statistical import AlignmentResult, align, statistical_links
from regard.alignment.symmetrize import SYMMETRIZATIONS, symmetrize
from regard.alignment.tokens import split_punctuation, tokens

__all__ = ["AlignmentOptions", "AlignmentResult", "ErrorRate", "Gold", "align", "align_by_attention"]
__all__ += ["combine", "error_rate", "links_of", "parse_gold", "parse_links", "read_gold", "read_links"]
__all__ += ["SYMMETRIZATIONS", "split_punctuation", "statistical_links", "symmetrize", "token_weights", "tokens"]
__all__ += ["Projection", "write_links"]
