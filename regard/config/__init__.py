"""Recipes, their defaults for the size of the data, and the model's folder."""
