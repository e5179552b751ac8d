"""The grammar of the English–Marathi sample, and what writes its files from it."""
