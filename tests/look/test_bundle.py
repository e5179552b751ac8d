"""ES modules as one script: their order, and what the bundle refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from regard.look.bundle import bundle


def reader(modules: dict[str, str]) -> Callable[[str], str]:
    return lambda path: modules[path]


def test_modules_come_after_those_they_import_and_once() -> None:
    modules = {
        "page/main.js": 'import { one } from "./one.js";\nimport {\n  two, three,\n} from "../other/two.js";\none();\n',
        "page/one.js": 'import { two } from "../other/two.js";\nexport function one() {}\n',
        "other/two.js": "export const two = 2;\nexport class three {}\nconst own = 1;\n",
    }
    assert bundle("page/main.js", reader(modules)) == (
        '"use strict";\n(() => {\nconst two = 2;\nclass three {}\nconst own = 1;\n'
        "\nfunction one() {}\n\none();\n})();\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        'import all from "./other.js";',
        'import * as all from "./other.js";',
        'import { one as two } from "./other.js";',
        'import { one } from "other";',
        'import { one } from "https://example.org/other.js";',
        "import './other.js';",
        'const other = await import("./other.js");',
        "const here = import.meta.url;",
        "export default 1;",
        "export { one };",
        'export * from "./other.js";',
        "  export const one = 1;",
        "const { one } = two;",
        "var one = 1;",
    ],
)
def test_other_forms_are_refused(line: str) -> None:
    modules = {"main.js": f"{line}\n", "other.js": "export const one = 1;\n"}
    with pytest.raises(ValueError, match=r"^main\.js: expected .*; got "):
        bundle("main.js", reader(modules))


def test_names_must_be_exported_and_differ() -> None:
    modules = {"main.js": 'import { one } from "./other.js";\n', "other.js": "const one = 1;\n"}
    with pytest.raises(ValueError, match=r"main\.js: other\.js does not export one"):
        bundle("main.js", reader(modules))
    modules = {"main.js": 'import { one } from "./other.js";\nfunction two() {}\n'}
    modules["other.js"] = "export const one = 1;\nfunction two() {}\n"
    with pytest.raises(ValueError, match=r"main\.js: two is declared in other\.js too"):
        bundle("main.js", reader(modules))


def test_cycles_are_refused() -> None:
    modules = {
        "a.js": 'import { b } from "./b.js";\nexport const a = 1;\n',
        "b.js": 'import { a } from "./a.js";\nexport const b = 1;\n',
    }
    with pytest.raises(ValueError, match=r"cycle of imports, got a\.js → b\.js → a\.js"):
        bundle("a.js", reader(modules))
