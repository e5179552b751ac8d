"""The scores of translations and of labels."""
