"""Word alignment: links from attention weights, symmetrization, statistical links, and the alignment error rate."""

from regard.alignment.aligner import AlignmentOptions, align
from regard.alignment.carry import carry
from regard.alignment.error_rate import ErrorRate, error_rate
from regard.alignment.extract import combine, links_of, token_weights
from regard.alignment.hmm import statistical_links
from regard.alignment.links import Gold, parse_gold, parse_links, read_gold, read_links, write_links
from regard.alignment.symmetrize import SYMMETRIZATIONS, symmetrize
from regard.alignment.tokens import split_punctuation, tokens

__all__ = ["AlignmentOptions", "ErrorRate", "Gold", "align", "carry", "combine", "error_rate", "links_of", "parse_gold"]
__all__ += ["parse_links", "read_gold", "read_links", "split_punctuation", "statistical_links"]
__all__ += ["SYMMETRIZATIONS", "symmetrize", "token_weights", "tokens", "write_links"]
