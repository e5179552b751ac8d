"""How good translations and labels are: the one definition of each score."""
