"""Files of every format, mutated at random, and translated by something that writes the worst: right, or a clear error.

    python -m tests.text.formats.drawn_files 500

What is right, other programs say: Python's parsers of HTML, JSON and CSV, and markdown-it.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from regard.text.formats.registry import parsed, written
from regard.text.formats.segments import segments, with_segments
from regard.text.keep import DEFAULT
from regard.text.placeables import Part

HTML = """<!DOCTYPE html>
<html lang=en><head><title>Keys &amp; locks</title><style>p > b { color: red }</style>
<script>if (1 < 2 && "a" > 'b') { document.write("<p>Not this</p>"); }</script></head>
<body class="x y"><!-- a note --><h1>All the <em>keys</em></h1>
<p>Rahul is a <b>good</b> boy, and has
   5 <code>keys</code> &lt; 6.<br>
   See <a href="https://example.org/?a=1&amp;b=2" title='x "y"'>the <i>other</i> page</a>.</p>
<ul><li>one</li><li>  </li><li><img src="a.png" alt="A text"> a picture</li></ul>
<pre>do not <b>touch</b> this</pre><table><tr><td>left<td>right</table>
<p translate="no">not this</p><p>1 < 2 &copy; 2026 </p><textarea>nor <p>this</textarea><svg><text>nor this</text></svg>
</body></html>
"""
MARKDOWN = """---
title: Not this
---
# All the *keys* #

Rahul is a **very *good* boy**, and has `keys*`
of 5 [other pages](https://example.org/a_(b) "title"), see [here] or [there][here].  
A hard break; a \\* star &amp; <b>tags</b>, <https://example.org>[^1].

- one item
  goes on
- [x] a task
  1. nested item

> a quotation
> goes on

| left | right \\| side |
|:-----|---|
| a cell | `code` here |

```python
print("not this")
```

    nor this

<div align="center">a <b>block</b> of HTML</div>

Another heading
---------------

***

[here]: https://example.org/x
[^1]: A footnote.
"""
SRT = """1
00:00:01,000 --> 00:00:02,500
<i>Rahul is a good boy,</i>
and has 5 keys.

2
00:00:03,000 --> 00:00:04,000 X1:10
- {\\an8}Who is there?
- Nobody, at 10:30.

3
00:00:05,000 --> 00:00:06,000

4
00:00:07,000 --> 00:00:08,000
42
"""
PO = """# A comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#: src/a.c:12
#, c-format
msgctxt "menu"
msgid "Open %s, \\"friend\\""
msgstr ""

msgid ""
"Line one\\n"
"line two {name}\\n"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "Done"
msgstr "झालं"

#~ msgid "old"
#~ msgstr ""
"""
JSON = """{
  "title": "All the keys",
  "count": 5, "list": ["one \\"item\\"", "<b>two</b> \\u00e9\\n  next line", {"deep": "https://example.org"}, null, ""],
  "no": true
}
"""
CSV = """id,text,note,other
1,Rahul is a good boy,x,"keep, this"
2,"He has ""5"" keys, and
a lock",y,
3,,z,
4,<b>good</b> boy,"a ""b\"\"",w
"""
SAMPLES = {"html": HTML, "md": MARKDOWN, "srt": SRT, "po": PO, "json": JSON, "csv": CSV}
COLUMNS = {"csv": ["text"]}
ODD = [
    "<",
    ">",
    '"',
    "'",
    "&",
    "\\",
    "|",
    "*",
    "_",
    "`",
    "[",
    "]",
    "(",
    "\n",
    "\n\n",
    "\r\n",
    ",",
    ";",
    "{",
    "}",
    "#",
    "-->",
]
ODD += [
    "<!--",
    "</",
    "<b",
    "%",
    "\t",
    "é",
    "अ",
    "\u2028",
    "\x00",
    "\ufeff",
    "msgid",
    "0",
    "- ",
    "> ",
    "```",
    "<p>",
    ":",
    "\ufdd0",
]
CLEAR = re.compile(r"line \d+: expected|columns: expected")
WORST = [
    "",
    " < 5",
    " & co",
    ' "x"',
    " |",
    " *",
    " 1. ",
    "# ",
    " -->",
    "\\",
    "]",
    "`",
    "- ",
    "<b>",
    "&lt;",
    "%s",
    "_",
    "\u2028",
]


def mutated(text: str, draw: random.Random) -> str:
    """Return a text with a few changes: parts removed, doubled, moved, or odd letters inserted."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(text) + 1)
        end = min(len(text), start + draw.choice([1, 1, 2, 5, 20, 80]))
        part = text[start:end]
        kind = draw.randrange(4)
        if kind == 0:
            text = text[:start] + text[end:]
        elif kind == 1:
            text = text[:end] + part + text[end:]
        elif kind == 2:
            place = draw.randrange(len(text) + 1)
            text = text[:place] + part + text[place:]
        else:
            text = text[:start] + draw.choice(ODD) + text[start:]
    return text


def translated(name: str, text: str, translate: Callable[[list[Part]], list[Part]]) -> str:
    """Return a file in which each segment is translated."""
    path, columns = Path(f"file.{name}"), COLUMNS.get(name, [])
    document = parsed(path, text, columns)
    translations = [translate(segment) for segment in segments(document, DEFAULT)]
    return written(path, document, with_segments(document, DEFAULT, translations), columns)[0]


def worst(draw: random.Random) -> Callable[[list[Part]], list[Part]]:
    """Return a translator into capitals that also writes what means something in the formats."""

    def translate(segment: list[Part]) -> list[Part]:
        result: list[Part] = [part.upper() if isinstance(part, str) else part for part in segment]
        result.insert(draw.randrange(len(result) + 1), draw.choice(WORST))
        return [part for part in result if part]

    return translate


# What must stay


def skeleton(name: str, text: str) -> Any:
    """Return what no translation may change, by a parser that is not ours; raise an error for a broken file."""
    return _SKELETONS[name](text)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.events: list[Any] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.events.append(("start", self.get_starttag_text()))

    def handle_endtag(self, tag: str) -> None:
        self.events.append(("end", tag))

    def handle_comment(self, data: str) -> None:
        self.events.append(("comment", data))

    def handle_decl(self, decl: str) -> None:
        self.events.append(("declaration", decl))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is not None:
            self.events.append(("data", data))


def _html(text: str) -> Any:
    tags = _Tags()
    tags.feed(text)
    tags.close()
    return tags.events


def _markdown(text: str) -> Any:
    front = re.match(r"\ufeff?---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", text)
    rest = text[front.end() :] if front else text
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(rest)
    blocks = [
        (token.type, token.markup, token.content if token.type in ("fence", "code_block") else "") for token in tokens
    ]
    inner = Counter(
        (child.type, child.content if child.type == "code_inline" else str(child.attrs))
        for token in tokens
        for child in token.children or []
        if child.type not in ("text", "softbreak", "html_inline", "text_special")
    )
    return front and front[0], blocks, inner


def _srt(text: str) -> Any:
    return re.findall(r"(?:^|\n)(?:\ufeff?[ \t]*\d+[ \t\r]*\n)?[^\n]*-->[^\n]*", text)


def _po(text: str) -> Any:
    """The strings by their keywords, those that were not empty."""
    strings: list[list[str]] = []
    for line in text.split("\n"):
        stripped = line.strip("\ufeff \t\r")
        if not stripped or stripped.startswith("#"):
            strings.append([line])
            continue
        match = re.fullmatch(r'(\w*(?:\[\d+\])?)\s*(".*")', stripped)
        assert match is not None
        value = match[2][1:-1]
        if match[1]:
            strings.append([match[1], value])
        else:
            strings[-1][-1] += value
    return strings


def _json(text: str) -> Any:
    def masked(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: masked(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [masked(inner) for inner in value]
        return "…" if isinstance(value, str) and re.search(r"[^\W\d_]", value) else value

    return masked(json.loads(text.removeprefix("\ufeff")))


def _csv(text: str) -> Any:
    rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    columns = [index for index, name in enumerate(rows[0]) if name.strip() == "text"]
    return [rows[0], *([cell for index, cell in enumerate(row) if index not in columns] for row in rows[1:])]


_SKELETONS = {"html": _html, "md": _markdown, "srt": _srt, "po": _po, "json": _json, "csv": _csv}


def same_skeleton(name: str, before: str, after: str) -> bool:
    one, two = skeleton(name, before), skeleton(name, after)
    if name == "po":  # only translations that were empty may have changed
        return len(one) == len(two) and all(
            a == b or (a[0] == b[0] and "msgstr" in a[0] and not a[1]) for a, b in zip(one, two, strict=True)
        )
    return bool(one == two)


def run(count: int, seed: int = 1, names: Sequence[str] = tuple(SAMPLES)) -> Counter[str]:
    """Translate so many mutated files; return how often they were translated or refused, and raise for a broken one."""
    draw = random.Random(seed)
    outcomes = Counter[str]()
    for number in range(count):
        name = names[number % len(names)]
        text = mutated(SAMPLES[name], draw)
        try:
            copied = translated(name, text, list)
        except ValueError as error:
            outcomes[f"{name} refused" if CLEAR.match(str(error)) else f"unclear: {error}"] += 1
            continue
        assert copied == text, (name, text)
        try:
            result = translated(name, text, worst(draw))
        except ValueError as error:
            outcomes[f"{name} not written" if "would break" in str(error) else f"unclear: {error}"] += 1
            continue
        assert same_skeleton(name, text, result), (name, text, result)
        outcomes[f"{name} translated"] += 1
    return outcomes


if __name__ == "__main__":
    for outcome, times in sorted(run(int(sys.argv[1]) if len(sys.argv) > 1 else 500, *map(int, sys.argv[2:3])).items()):
        print(f"{outcome:20} {times:6}")
