"""Looking: what an answer looked at, for people and as data. Needs a trace, never a model."""
