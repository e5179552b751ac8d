"""Every cache of the package has a bound and a reason, and is registered."""

import ast
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

import regard
from regard import Window, attention
from regard.core.kernels.cpu.parts import layout_of
from regard.runtime.caches import CacheReport, cache_report, cached, clear_caches

PACKAGE = Path(regard.__file__).parent
FORBIDDEN = {"lru_cache", "cache"}


def package_report() -> list[CacheReport]:
    pytest.importorskip("triton", minversion="3.4")  # some modules import it
    for module in pkgutil.walk_packages([str(PACKAGE)], "regard."):
        if not module.name.endswith(("__main__", "_device")):
            import_module(module.name)
    return [each for each in cache_report() if each.name.startswith("regard.")]


def own_caches(source: str) -> set[str]:
    """The names of functools by which a module would have a cache of its own."""
    used = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "functools":
            used |= FORBIDDEN & {each.name for each in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "functools":
            used |= FORBIDDEN & {node.attr}
    return used


def test_only_the_runtime_has_caches_of_functools() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "runtime"]
    assert len(modules) > 100
    assert not {path: used for path in modules if (used := own_caches(path.read_text("utf-8")))}
    assert own_caches((PACKAGE / "runtime" / "caches.py").read_text("utf-8")) == {"lru_cache"}


@pytest.mark.parametrize(
    "source", ["from functools import cache as c", "import functools\n@functools.lru_cache\ndef f(): 0"]
)
def test_that_check_sees_caches(source: str) -> None:
    assert own_caches(source) and not own_caches("from functools import cached_property")


def test_every_cache_has_a_bound_and_a_reason() -> None:
    report = package_report()
    assert report
    for each in report:
        assert isinstance(each.maxsize, int) and 1 <= each.maxsize <= 256, each
        assert len(each.reason.split()) > 4, each


def test_the_documentation_lists_every_cache() -> None:
    text = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    rows = [line.split("|")[1:3] for line in text.partition("## Caches")[2].splitlines() if line.startswith("| `")]
    documented = {name.strip().strip("`"): int(maxsize) for name, maxsize in rows}
    assert documented == {each.name.removeprefix("regard."): each.maxsize for each in package_report()}


def test_a_value_is_computed_once_until_it_is_cleared() -> None:
    calls = []

    @cached(maxsize=2, reason="a test")
    def double(number: int) -> int:
        """Twice."""
        calls.append(number)
        return 2 * number

    def entries() -> int:
        return next(each.entries for each in cache_report() if each.name.endswith("<locals>.double"))

    assert double.__doc__ == "Twice."
    assert [double(3), double(3), double(4), double(5)] == [6, 6, 8, 10]
    assert calls == [3, 4, 5] and entries() == 2
    clear_caches()
    assert entries() == 0 and double(5) == 10 and calls == [3, 4, 5, 5]


def test_attention_lays_out_a_pattern_once() -> None:
    """And equally after its caches were cleared."""
    clear_caches()
    states, layout = torch.randn(2, 700, 8), layout_of(Window(9), 700, 700, 0)
    first, again = (attention(states, states, states, pattern=Window(9)).context for _ in range(2))
    assert layout_of(Window(9), 700, 700, 0) is layout and layout.parts(regroup=False) is layout.parts(regroup=False)
    clear_caches()
    assert layout_of(Window(9), 700, 700, 0) is not layout
    anew = attention(states, states, states, pattern=Window(9)).context
    assert torch.equal(first, again) and torch.equal(first, anew)


def test_the_registry_needs_no_torch() -> None:
    code = "import sys, regard, regard.runtime.caches; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
