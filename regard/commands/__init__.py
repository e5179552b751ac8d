"""The commands, one a file: each reads its arguments, calls the package and tells what came of it."""
