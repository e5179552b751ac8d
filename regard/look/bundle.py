"""ES modules as one script, for pages that load nothing: the same files serve as modules of a page with a server.

Only what our own modules use is understood: named imports and exported declarations, each at the start of a line.

    import { make, range } from "./drawing.js";
    export const END = "⏹";
    export function draw(…) {…}

Anything else that imports or exports is an error, and so are two modules that declare the same name, since all names
share one scope in the bundle.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

_NAMES = r"\s*((?:[\w$]+,\s*)*[\w$]+),?\s*"
_IMPORT = re.compile(rf'^import \{{{_NAMES}\}} from "(\.\.?/[\w./-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|let|function|async function|class) )", re.MULTILINE)
_DECLARED = re.compile(r"^(export )?(?:const|let|function|async function|class) ([\w$]+)", re.MULTILINE)
_OTHER = re.compile(r"^\s*(?:import|export)\b.*|\bimport\s*[(.].*", re.MULTILINE)
_DESTRUCTURED = re.compile(r"^(?:export )?(?:const|let|var) [{[].*|^var .*", re.MULTILINE)


def bundle(path: str, read: Callable[[str], str]) -> str:
    """Return the module at `path`, and all that it imports, as one classic script whose names stay inside of it.

    `read` returns the text of a module by its path. Imports are relative to the path of the importing module.
    """
    modules: dict[str, str] = {}  # path → its text without imports and exports, in the order to run them
    exports: dict[str, set[str]] = {}
    declared: dict[str, str] = {}  # name → the module that declares it
    open_modules: list[str] = []  # those whose imports are being added

    def add(module: str) -> None:
        if module in open_modules:
            raise ValueError(f"{module}: expected no cycle of imports, got {' → '.join([*open_modules, module])}")
        if module in modules:
            return
        open_modules.append(module)
        text = read(module)
        for names, specifier in _IMPORT.findall(text):
            imported = posixpath.normpath(posixpath.join(posixpath.dirname(module), specifier))
            add(imported)
            missing = {name.strip() for name in names.split(",")} - exports[imported]
            if missing:
                raise ValueError(f"{module}: {imported} does not export {', '.join(sorted(missing))}")
        for exported, name in _DECLARED.findall(text):
            if name in declared:
                raise ValueError(f"{module}: {name} is declared in {declared[name]} too")
            declared[name] = module
            exports.setdefault(module, set()).update({name} if exported else set())
        exports.setdefault(module, set())
        modules[module] = _plain(module, text)
        open_modules.pop()

    add(path)
    joined = "\n".join(modules.values())
    return f'"use strict";\n(() => {{\n{joined}}})();\n'


def _plain(module: str, text: str) -> str:
    """Return a module's text without imports and the word export; raise a ValueError for forms that are not known."""
    plain = _EXPORT.sub("", _IMPORT.sub("", text))
    unknown = _OTHER.search(plain) or _DESTRUCTURED.search(plain)
    if unknown:
        expected = 'import { name } from "./module.js"; export const, let, function or class; one name a declaration'
        raise ValueError(f"{module}: expected {expected}; got {unknown[0].strip()!r}")
    return plain
