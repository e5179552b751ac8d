"""Search: from a model and a source to target tokens, with what every step looked at."""
