"""Mutations of values inside of JSON, TOML and safetensors files: other types, huge numbers, nesting, hostile ones."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzzing.file_mutations import Draw, Mutation

RAW = "\x02raw "  # begins a text that becomes raw JSON, which `json.dumps` would not write
ODD_JSON: list[Any] = [
    *(None, True, False, 0, -1, 1, 3, 2**31, 2**63, 10**30, -(10**30), 0.5, 1e300, "", "x", "1", "\ud800", "a\nb"),
    *([], {}, [[]], {"a": 1}, [None], [1] * 1000, "x" * 100_000, "\x1b[2J", "../../secret", "\u202e", "\x00"),
    *(RAW + "1e400", RAW + "NaN", RAW + "-Infinity", RAW + "9" * 5000, RAW + "[" * 90_000, RAW + "[" * 60 + "]" * 60),
]
EXPLODING = r"(x+x+)+y|(\p{L}+)+$|(.*)*z"
HOSTILE_TOKENIZER: dict[str, Any] = {
    "normalizer": {"type": "Replace", "pattern": {"Regex": EXPLODING}, "content": "x" * 1000},
    "pre_tokenizer": {"type": "Split", "pattern": {"Regex": EXPLODING}, "behavior": "Isolated", "invert": False},
    "decoder": {"type": "Replace", "pattern": {"Regex": EXPLODING}, "content": ""},
    "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "padding": {
        "strategy": {"Fixed": 10**9},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "<pad>",
    },
    "truncation": {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0},
    "added_tokens": [
        {"id": 10**8, "content": "a", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": False}
    ],
}  # fmt: skip
ODD_TOML = [
    *("2147483647", "99999999999999999999", "16777216", "-1", "0", "1", "1000", "1e400", "-1e9", "nan", "inf", '"x"'),
    *('""', "true", "[1]", "{a=1}", "1979-05-27", "0x" + "f" * 5000, "9" * 5000, "[" * 50_000, "{a=" * 20_000),
    *('"' + "x" * 50_000 + '"', "'''\n'''", '"\\ud800"', "1_0", "+5", "0.5", '"full"', '"none"'),
]
HOSTILE_TOML = [
    *('pattern = "global(0:2000000000)"', 'pattern = "random(2147483647, 1, 1)"'),
    *(f'pattern = "{"per_head(" * 3000}"', f'pattern = "{"full|" * 8000}full"', f'pattern = "{"(" * 9000}"'),
    *('pattern = "grid(2147483647, 2147483647).axial"', 'pattern = "bigbird(2147483646, 0, 2147483647, 1)"'),
    *('pattern = "strided(2147483647)"', 'pattern = "dilated(2147483647, 2147483647)"', 'pattern = "window(0)"'),
    *("encoder_layers = 2000000000", "decoder_layers = 1000000", "layers = 1000000000", "heads = 1073741824"),
    *("width = 2147483647", "beam = 1000000", "mbr = 1000000000", "max_tokens = 1", "length_penalty = 99"),
    *(".".join(["a"] * 20_000) + " = 1", "[" + ".".join(["a"] * 9000) + "]", 'base = "article"', 'kind = "words"'),
    *("states = \"" + "rnn + " * 9000 + 'tfidf"', "embedding = 2147483647", "patch = 2147483647", "predictive = 9"),
    *("image_height = 2147483644", "positions = 2147483647", 'positions = "alibi"', 'normalizer = "hard"'),
]  # fmt: skip


def json_value(file: Path, draw: Draw) -> str:
    """Replace, remove or add a value anywhere in a JSON document, or of one line of JSON lines."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n") if file.suffix == ".jsonl" else [file.read_text("utf-8")]
        row = draw.randrange(len(lines))
        tree = json.loads(lines[row])
    except (ValueError, RecursionError):
        return "nothing: no longer JSON"
    what = _change(tree, draw)
    text = json.dumps(tree, ensure_ascii=draw.random() < 0.5)
    for odd in ODD_JSON:
        if isinstance(odd, str) and odd.startswith(RAW):
            for spelled in (json.dumps(odd), json.dumps(odd, ensure_ascii=False)):
                text = text.replace(spelled, odd.removeprefix(RAW))
    lines[row] = text
    file.write_bytes("\n".join(lines).encode(errors="surrogatepass"))
    return what


def _change(tree: Any, draw: Draw) -> str:
    places = list(_places(tree))
    if not places:
        return "nothing: no place"
    depth = draw.choice(sorted({depth for _, _, depth in places}))  # near the root as often as deep inside
    holder, key, _ = draw.choice([place for place in places if place[2] == depth])
    kind = draw.random()
    if kind < 0.15:
        del holder[key]
        return f"{key!r} removed"
    if kind < 0.25 and isinstance(holder, dict):
        holder[f"{key}s"] = holder.pop(key)
        return f"{key!r} renamed"
    if kind < 0.35:
        other, second, _ = draw.choice(places)
        holder[key], other[second] = other[second], holder[key]
        return f"{key!r} and {second!r} swapped"
    holder[key] = draw.choice(ODD_JSON)
    return f"{key!r} = {str(holder[key])[:30]!r}"


def _places(tree: Any, depth: int = 0) -> Iterator[tuple[Any, Any, int]]:
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key, depth
        yield from _places(tree[key], depth + 1)


def hostile_tokenizer(file: Path, draw: Draw) -> str:
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
        name = draw.choice(sorted(HOSTILE_TOKENIZER))
        tree[name] = HOSTILE_TOKENIZER[name]
    except (ValueError, RecursionError, TypeError):
        return "nothing: no longer JSON"
    file.write_text(json.dumps(tree), encoding="utf-8")
    return f"hostile {name}"


def toml_value(file: Path, draw: Draw) -> str:
    """Replace the value of a key of a recipe."""
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    rows = [row for row, line in enumerate(lines) if "=" in line] or [0]
    row, value = draw.choice(rows), draw.choice(ODD_TOML)
    key = lines[row].partition("=")[0]
    lines[row] = f"{key}= {value}"
    file.write_text("\n".join(lines), encoding="utf-8")
    return f"{key.strip()} = {value[:30]}"


def toml_line(file: Path, draw: Draw) -> str:
    """Remove, double or add a line of a recipe; a hostile one replaces the value of its key where there is one."""
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    row, kind = draw.randrange(len(lines)), draw.random()
    if kind < 0.2:
        removed = lines.pop(row)
        file.write_text("\n".join(lines), encoding="utf-8")
        return f"line {removed!r} removed"
    line = lines[row] if kind < 0.3 else draw.choice(HOSTILE_TOML)
    key = line.partition("=")[0].strip()
    same = [number for number, each in enumerate(lines) if each.partition("=")[0].strip() == key]
    if kind > 0.5 and same:
        lines[draw.choice(same)] = line
    else:
        lines.insert(row, line)
    file.write_text("\n".join(lines), encoding="utf-8")
    return f"line {line[:40]!r} put in"


def tensor_header(file: Path, draw: Draw) -> str:
    """Change the header of a safetensors file: shapes, dtypes, offsets, names, metadata, its length."""
    content = file.read_bytes()
    try:
        length = int.from_bytes(content[:8], "little")
        tree = json.loads(content[8 : 8 + length])
        names = [name for name in tree if name != "__metadata__"]
        entry = tree[draw.choice(names)]
        what = draw.choice(["shape", "dtype", "offsets", "drop", "rename", "add", "metadata", "any", "length"])
        _change_header(tree, entry, names, what, draw)
    except (ValueError, RecursionError, KeyError, TypeError, IndexError, AttributeError):
        return "nothing: no longer a header"
    text = json.dumps(tree).encode()
    size = draw.choice([0, 1, 2**24, 2**63, 2**64 - 1, len(text) - 1]) if what == "length" else len(text)
    file.write_bytes(struct.pack("<Q", size) + text + content[8 + length :])
    return f"header: {what}"


def _change_header(tree: Any, entry: Any, names: list[str], what: str, draw: Draw) -> None:
    huge = draw.choice([0, -1, 1, 2**31, 2**62, 10**30, 1.5, "3", None])
    if what == "shape":
        entry["shape"] = draw.choice([[huge], [huge, huge], entry["shape"][::-1], [1, *entry["shape"]], [], huge])
    elif what == "dtype":
        entry["dtype"] = draw.choice(["F64", "F16", "BF16", "I32", "U8", "BOOL", "F8_E4M3", "C64", "x", 3])
    elif what == "offsets":
        entry["data_offsets"] = draw.choice([[0, huge], [huge, huge], [0], entry["data_offsets"][::-1], huge])
    elif what == "drop":
        del tree[draw.choice(names)]
    elif what == "rename":
        tree[draw.choice(["x", "", "../x", "\x1b", "weights/"])] = tree.pop(draw.choice(names))
    elif what == "add":
        tree["more"] = {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}
    elif what == "metadata":
        tree["__metadata__"] = draw.choice([{"progress": "{}"}, {"progress": "[" * 9000}, {}, [], {"a": 1}, "x"])
    elif what == "any":
        _change(tree, draw)


def tensor_values(file: Path, draw: Draw) -> str:
    """Fill a part of the numbers with NaN, infinity or huge values."""
    content = bytearray(file.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    if begin + 4 > len(content):
        return "nothing: no data"
    value = draw.choice([float("nan"), float("inf"), 3e38, -3e38, 1e-40, 1e18])
    first = begin + 4 * draw.randrange((len(content) - begin) // 4)
    count = min(draw.choice([1, 100, 10**9]), (len(content) - first) // 4)
    content[first : first + 4 * count] = struct.pack("<f", value) * count
    file.write_bytes(content)
    return f"{count} numbers are {value}"


def mutations_of(file: Path) -> list[Mutation]:
    """Return the structured mutations of a file, by its name."""
    if file.suffix == ".safetensors":
        return [tensor_header, tensor_header, tensor_values]
    if file.suffix == ".toml":
        return [toml_value, toml_value, toml_line, toml_line]
    tokenizer = [hostile_tokenizer] if file.name in ("tokenizer.json", "source.json", "target.json") else []
    return [json_value, json_value, *tokenizer]
