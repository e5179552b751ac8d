"""Models: from token numbers to the next token's, with attention in between."""
