"""LibreTranslate's API: fields, formats of requests, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import regard
from regard.serving.app import create_app
from regard.serving.settings import Limits, ServerSettings
from regard.text.pairs import read_pairs

GOOD = {"q": "The boy sees a mango.", "source": "en", "target": "de"}


def translated(api: TestClient, **fields: Any) -> Any:
    response = api.post("/translate", json=GOOD | fields)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture(scope="module")
def expected(german_folder: Path) -> str:
    text: str = regard.load(german_folder, "cpu").translate(GOOD["q"])  # type: ignore[union-attr]
    assert text
    return text


def test_every_format_of_a_request(api: TestClient, expected: str) -> None:
    answers = [
        api.post("/translate", json=GOOD),
        api.post("/translate", data=GOOD),
        api.post("/translate", params=GOOD),
        api.post("/translate", files={name: (None, value) for name, value in GOOD.items()}),
        api.post("/translate", json=GOOD | {"format": "", "api_key": None, "alternatives": 0}),
    ]
    assert [answer.json() for answer in answers] == [{"translatedText": expected}] * 5
    assert translated(api, q=[GOOD["q"]] * 2) == {"translatedText": [expected] * 2}
    repeated = api.post("/translate", params=[("q", GOOD["q"]), ("q", GOOD["q"]), ("source", "en"), ("target", "de")])
    assert repeated.json() == {"translatedText": [expected] * 2}


def test_lines_and_white_space_stay(api: TestClient, expected: str) -> None:
    assert translated(api, q=f"  {GOOD['q']}\r\n\r\n{GOOD['q']} \n")["translatedText"] == (
        f"  {expected}\r\n\r\n{expected} \n"
    )
    assert translated(api, q=" \n")["translatedText"] == " \n"


def test_html(api: TestClient) -> None:
    source = '<p class="a">The <b>boy</b> sees a mango.</p><script>let a = "The boy";</script>'
    result = translated(api, q=source, format="html", alternatives=2)
    assert result["translatedText"].startswith('<p class="a">') and result["alternatives"] == []
    assert result["translatedText"].endswith('</p><script>let a = "The boy";</script>')
    assert result["translatedText"] != source


def test_alternatives(api: TestClient) -> None:
    one = translated(api, alternatives=3)
    assert 1 <= len(one["alternatives"]) <= 3
    assert len({one["translatedText"], *one["alternatives"]}) == 1 + len(one["alternatives"])
    many = translated(api, q=[GOOD["q"], "Rahul buys a house."], alternatives=2)
    assert len(many["alternatives"]) == 2 and all(isinstance(each, list) for each in many["alternatives"])


def test_more_fields(api: TestClient) -> None:
    result = translated(api, alignment=True, trace="true", beam=2)
    (part,) = result["alignment"]
    words = [part["source"]["text"][start:end] for start, end in part["source"]["words"]]
    assert words == ["The", "boy", "sees", "a", "mango", "."]
    targets = len(part["target"]["words"])
    assert part["links"] and all(0 <= s < 6 and 0 <= t < targets for s, t in part["links"])
    (trace,) = result["trace"]
    assert trace["source"]["text"] == GOOD["q"] and trace["steps"]
    assert translated(api, glossary={"mango": "Kokosnuss"})["translatedText"].count("Kokosnuss") == 1
    assert translated(api, glossary='{"mango": ["Birne", "Birnen"]}')["translatedText"].count("Birne") == 1
    assert "4711" in translated(api, q="The boy sees 4711 mangos.", keep="numbers")["translatedText"]
    assert translated(api, prefix="Rahul")["translatedText"].startswith("Rahul")
    named = translated(api, model="german")
    assert named["translatedText"] == translated(api)["translatedText"]


def test_confidence(api: TestClient) -> None:
    result = translated(api, q=[GOOD["q"], f"{GOOD['q']}\nRahul buys a house."], confidence="1")
    first, second = result["confidence"]
    assert " ".join(word for word, _ in first["words"]).replace(" .", ".") == result["translatedText"][0]
    for each in (first, second):
        assert 0 <= each["text"] <= 1 and all(0 <= value <= 1 for _, value in each["words"])
    assert len(second["words"]) > len(first["words"])


def test_auto(api: TestClient, expected: str) -> None:
    result = translated(api, source="auto")
    assert result["translatedText"] == expected and result["detectedLanguage"]["language"] == "en"
    assert 50 < result["detectedLanguage"]["confidence"] <= 100
    several = translated(api, q=[GOOD["q"]] * 2, source="auto")
    assert len(several["detectedLanguage"]) == 2
    same = translated(api, q="मुलगा आंबा पाहतो.", source="auto", target="mr", trace=True)
    assert same["translatedText"] == "मुलगा आंबा पाहतो." and same["trace"] == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({"q": None}, "q: it is missing"),
    ({"q": ""}, "q: it is missing"),
    ({"q": []}, "q: it is missing"),
    ({"q": 5}, "q: expected a text or a list of texts, got 5"),
    ({"q": ["a", 5]}, "q: expected texts, got 5 as number 2"),
    ({"q": "\ud800"}, "body: expected Unicode, got half of a surrogate pair"),
    ({"q": "x" * 10_001}, "q: expected at most 10,000 characters, got 10,001"),
    ({"q": ["x"] * 257}, "q: expected at most 256 texts, got 257"),
    ({"source": ""}, "source: it is missing"),
    ({"source": ["en"]}, "source: expected a text, got a list"),
    ({"target": None}, "target: it is missing"),
    ({"source": "xx"}, "source: 'xx' is not supported; the languages are en, mr, de"),
    ({"target": "\udc00\ud800"}, "body: expected Unicode"),
    ({"source": "de", "target": "mr"}, "target: no model translates from German (de) to Marathi (mr)"),
    ({"format": "pdf"}, "format: expected text or html, got 'pdf'"),
    ({"alternatives": "x"}, "alternatives: expected a whole number, got 'x'"),
    ({"alternatives": 21}, "alternatives: expected a number from 0 to 20, got 21"),
    ({"beam": 0}, "beam: expected a number from 1 to 20, got 0"),
    ({"trace": "maybe"}, "trace: expected true or false, got 'maybe'"),
    ({"glossary": ["a"]}, "glossary: expected an object"),
    ({"glossary": {"a": 5}}, "glossary: expected terms"),
    ({"glossary": {"": "a"}}, "glossary: expected a source and a target term"),
    ({"q": "*_" * 2000, "keep": "markup"}, "expected fewer tags and other things to keep in a paragraph, got 2,666"),
    ({"keep": "everything"}, "keep: expected some of"),
    ({"keep": "re:(a+)+$"}, "keep: expected kinds such as numbers,markup; a server takes no patterns"),
    ({"model": "other"}, "model: expected one of toy, german, got 'other'"),
    ({"model": "toy"}, "model: toy translates from en to mr"),
]


@pytest.mark.parametrize(("fields", "message"), BAD, ids=lambda value: str(value)[:40])
def test_mistakes(api: TestClient, fields: dict[str, Any], message: str) -> None:
    headers = {"Content-Type": "application/json"}
    response = api.post("/translate", content=json.dumps(GOOD | fields), headers=headers)
    assert response.status_code == 400 and response.json()["error"].startswith(message), response.text


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"{", "application/json", "expected JSON"),
        (b"[1]", "application/json", "expected a JSON object"),
        (b'{"q": "\xff"}', "application/json", "expected UTF-8, and byte 7 is not"),
        (b"[" * 100_000, "application/json", "expected JSON that is nested less deeply"),
        (b'{"q": ' + b"[" * 5000 + b"]" * 5000 + b"}", "application/json", ""),  # Python decides what is too deep
        (
            b'{"q": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
            "application/json",
            "expected JSON that is nested less deeply",
        ),
        (b"q=%ff&source=en", "application/x-www-form-urlencoded", "expected fields in UTF-8"),
        (b"q=\xff&source=en", "application/x-www-form-urlencoded", "expected fields in UTF-8"),
        (b"a&" * 2000, "application/x-www-form-urlencoded", "expected fields of a form"),
        (b"hello", "text/plain", "Content-Type: expected JSON or a form, got 'text/plain'"),
        (b"--x\r\nbroken", "multipart/form-data; boundary=x", ""),
        (b"no boundary", "multipart/form-data", ""),
    ],
)
def test_broken_bodies(api: TestClient, content: bytes, kind: str, message: str) -> None:
    response = api.post("/translate", content=content, headers={"Content-Type": kind})
    assert response.status_code == 400 and response.json()["error"].startswith(message), response.text


def test_languages_and_detection(api: TestClient) -> None:
    languages = api.get("/languages").json()
    assert languages[0] == {"code": "en", "name": "English", "targets": ["de", "en", "mr"]}
    assert [each["code"] for each in languages] == ["en", "mr", "de"]
    assert api.post("/languages", data={"api_key": "x"}).json() == languages
    for text, code in (
        ("The boy sees the book.", "en"),
        ("मुलगी पाणी मागतो.", "mr"),
        ("Das Mädchen kauft Wasser.", "de"),
    ):
        detected = api.post("/detect", data={"q": text}).json()
        assert detected[0]["language"] == code and detected[0]["confidence"] > 60
        assert sum(each["confidence"] for each in detected) <= 100.5
    assert api.post("/detect", json={}).status_code == 400
    assert api.post("/detect", json={"q": "12"}).json()[0]["confidence"] == 0


def test_settings_health_and_spec(api: TestClient) -> None:
    settings = api.get("/frontend/settings").json()
    assert settings["charLimit"] == 10_000 and not settings["keyRequired"] and not settings["suggestions"]
    assert ".txt" in settings["supportedFilesFormat"] and settings["language"]["source"]["code"] == "auto"
    assert api.get("/health").json() == {"status": "ok"}
    assert api.get("/spec").json() == api.get("/openapi.json").json()
    assert api.get("/docs").status_code == api.get("/redoc").status_code == 404


def test_files(api: TestClient, expected: str) -> None:
    fields = {"source": "en", "target": "de"}
    sent = {"file": ("../notes.txt", f"{GOOD['q']}\n\n 12\n{GOOD['q']}".encode())}
    address = api.post("/translate_file", data=fields, files=sent).json()["translatedFileUrl"]
    assert address.startswith("http://localhost/download_file/") and address.endswith(".notes.txt")
    download = api.get(address)
    assert download.text == f"{expected}\n\n 12\n{expected}"
    assert download.headers["content-disposition"] == "attachment; filename*=UTF-8''notes.txt"
    pages = {"file": ("page.html", f"<h1>{GOOD['q']}</h1>".encode())}
    page = api.post("/translate_file", data=fields | {"source": "auto"}, files=pages).json()["translatedFileUrl"]
    assert api.get(page).text == f"<h1>{expected}</h1>"
    table = {"file": ("t.csv", f"id,text\n1,{GOOD['q']}\n".encode())}
    csv = api.post("/translate_file", data=fields | {"columns": "text"}, files=table).json()["translatedFileUrl"]
    assert api.get(csv).text == f"id,text\n1,{expected}\n"
    for name, content, message in (
        ("a.docx", b"x", "file: expected a name that ends in .txt"),
        ("a.json", b"{", "a.json: line 1: expected JSON"),
        ("a.txt", b"\xff", "a.txt: expected UTF-8"),
        ("a.csv", b"a,b\n", "a.csv: columns: expected some of"),
        ("a.txt", b"x" * 500_001, "file: expected at most 500,000 characters"),
    ):
        refused = api.post("/translate_file", data=fields, files={"file": (name, content)})
        assert refused.status_code == 400 and refused.json()["error"].startswith(message)
    assert api.post("/translate_file", data=fields).json()["error"] == "file: it is missing"
    assert api.get("/download_file/nothing.txt").status_code == 404


def test_suggestions(german_folder: Path, translator_folder: Path, tmp_path: Path) -> None:
    pair = {"q": "A\tnew\nbook.", "s": "Ein neues Buch.", "source": "en", "target": "de"}
    settings = ServerSettings([german_folder], suggestions=tmp_path / "pairs.tsv", limits=Limits(suggestions=80))
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        assert client.get("/frontend/settings").json()["suggestions"]
        assert client.post("/suggest", json=pair).json() == {"success": True}
        assert client.post("/suggest", data=pair | {"q": "Another."}).json() == {"success": True}
        assert client.post("/suggest", json=pair | {"target": "mr"}).status_code == 400
        assert client.post("/suggest", json=pair | {"s": ""}).json()["error"] == "s: it is missing"
        assert client.post("/suggest", json=pair).json()["error"] == "suggestions: the server takes no more of them"
    saved = read_pairs([tmp_path / "pairs.tsv"]).pairs
    assert [(each.source, each.target) for each in saved] == [
        ("A new book.", "Ein neues Buch."),
        ("Another.", "Ein neues Buch."),
    ]
    several = ServerSettings([german_folder, translator_folder], suggestions=tmp_path / "all.tsv")
    with TestClient(create_app(several), base_url="http://localhost") as client:
        client.post("/suggest", json=pair)
    assert (tmp_path / "all-en-de.tsv").read_text() == "A new book.\tEin neues Buch.\ten\tde\n"


def test_suggestions_are_refused_without_a_file(api: TestClient) -> None:
    assert api.post("/suggest", json=GOOD | {"s": "x"}).status_code == 403
