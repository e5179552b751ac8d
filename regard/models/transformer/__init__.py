"""The Transformer encoder–decoder."""
