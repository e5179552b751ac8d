"""The commands of `regard`, one per file: each reads its arguments, calls the package and prints the results."""
