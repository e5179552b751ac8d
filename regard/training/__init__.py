"""Training: from pairs and a recipe to a model folder."""
