"""`regard serve` and `regard studio`: options that are refused before anything listens."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from regard.commands import serve as command
from tests.commands.drawn_command_lines import ODD_VALUES
from tests.commands.run import Inside, refused
from tests.launching import free_port


def test_mistakes(inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "expected at least one model" in refused(inside("serve"))
    assert "expected the folder of a model" in refused(inside("serve", tmp_path / "none", "--port", "0"))
    assert "expected the folder of a model" in refused(inside("studio", tmp_path / "none", "--port", "0"))
    elsewhere = "--host 0.0.0.0: expected --api-key for others than this machine, or --no-key"
    assert elsewhere in refused(inside("serve", tmp_path, "--host", "0.0.0.0"))
    assert "--api-key: expected 8 to 200 letters" in refused(inside("serve", tmp_path, "--api-key", "short"))
    assert "--api-key-file: expected a file" in refused(inside("serve", tmp_path, "--api-key-file", tmp_path))
    assert "--allow-origin: expected one such as" in refused(inside("serve", tmp_path, "--allow-origin", "example.org"))
    assert "--suggestions: expected a .tsv" in refused(inside("serve", tmp_path, "--suggestions", "a.txt"))
    monkeypatch.setenv(command.KEYS_VARIABLE, "a b")
    assert "--api-key: expected 8 to 200 letters" in refused(inside("serve", tmp_path))


def test_a_port_in_use(inside: Inside) -> None:
    from regard.serving.run import listening_socket

    port = free_port()
    with listening_socket("127.0.0.1", port):
        assert f"--port: {port} is in use on 127.0.0.1" in refused(inside("studio", "--port", port))


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keys").write_text("first-key\nsecond-key\n")
    monkeypatch.setenv(command.KEYS_VARIABLE, "third-key,fourth-key")
    keys = command._keys(["fifth-key"], tmp_path / "keys")
    assert keys == {"first-key", "second-key", "third-key", "fourth-key", "fifth-key"}


def test_folders_of_comparisons(inside: Inside, tmp_path: Path) -> None:
    """The studio takes them among the models; a server without the page does not."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "plan.json").write_text("{}")
    message = refused(inside("studio", tmp_path, "--port", "0", "--work", tmp_path / "work"))
    assert "expected a comparison that has ended; it has no compare.json" in message
    assert "not a model's folder" in refused(inside("serve", tmp_path, "--port", "0"))


def test_without_the_extra(inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "NEEDED", ("fastapi", "no_such_package"))
    message = refused(inside("serve", tmp_path))
    assert (
        message == "regard: no_such_package is not installed; expected: pip install fastapi uvicorn python-multipart\n"
    )


def test_help_loads_neither_torch_nor_fastapi() -> None:
    script = (
        "import sys\nsys.argv[1:] = ['serve', '--help']\nfrom regard.__main__ import main\n"
        "try: main()\nexcept SystemExit as ended: assert not ended.code\n"
        "sys.exit(bool({'torch', 'fastapi', 'uvicorn'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--api-key" in done.stdout


VALUED = (
    *(
        "--host",
        "--port",
        "--allow-host",
        "--allow-origin",
        "--api-key",
        "--keep-loaded",
        "--rate-limit",
        "--max-texts",
    ),
    *("--max-characters", "--max-batch", "--suggestions", "--device", "--threads", "--precision"),
)


@pytest.mark.parametrize("name", ["serve", "studio"])
def test_odd_values_are_refused_in_one_line(name: str, inside: Inside, tmp_path: Path) -> None:
    """None of them begins to listen, because there is no such file of keys."""
    draw = random.Random(1)
    for option in VALUED:
        for value in draw.sample(ODD_VALUES, 4):
            done = inside(name, tmp_path, option, value, "--api-key-file", tmp_path / "none")
            if "--help" not in value:
                refused(done)
