"""Collect these tests only where `python -m tests.gpu` runs them."""

import os

collect_ignore_glob = [] if "REGARD_TEST_GPU" in os.environ else ["test_*.py"]
