import argparse


def add_options(p: argparse.ArgumentParser) -> None: ...
def run(g: argparse.Namespace) -> int:
    return 0
