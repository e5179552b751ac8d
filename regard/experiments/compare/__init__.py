"""`regard compare`: kinds of models, trained on the same data, in one table."""
