"""How long does a person wait for the first translation while typing in the studio?

    python benchmarks/studio_typing.py MODEL [--texts 40] [--threads N]

Starts `regard studio MODEL`, opens its page in chromium, types texts letter by letter as a person does, and measures in
the page, by its own clock,

    first letter   from the first letter's input event until the first translation is on the page
    details        from the last letter's input event until words can be pointed at
"""

from __future__ import annotations

import argparse
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

TEXTS = ("The boy is reading a book.", "Sita is a good girl.", "My friend wants some water.", "Where is the old man?")
MEASURE = """() => {
  const output = document.querySelector(".output");
  window.times = {first: null, words: null, typed: null, begun: null};
  document.querySelector("textarea").addEventListener("input", () => {
    times.typed = performance.now();
    times.begun ??= times.typed;
  }, {capture: true});
  new MutationObserver(() => {
    const now = performance.now();
    if (output.textContent.trim() && times.begun !== null) {
      times.first ??= now - times.begun;
      if (output.querySelector(".word")) times.words = now - times.typed;
    }
  }).observe(output, {childList: true, subtree: true, characterData: true});
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--delay", type=float, default=90, help="milliseconds between letters")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = ["--threads", str(options.threads)] if options.threads else []
    command = [sys.executable, "-m", "regard", "studio", str(options.model), "--port", str(port), *threads]
    server = subprocess.Popen(command)
    try:
        wait_for(f"http://127.0.0.1:{port}/api/models")
        report(measure(f"http://127.0.0.1:{port}/", options.texts, options.delay))
    finally:
        server.terminate()
        server.wait(30)


def wait_for(address: str, seconds: float = 60) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            urlopen(address).close()
            return
        except URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def measure(address: str, count: int, delay: float) -> list[dict[str, Any]]:
    """Return the times of each text, in milliseconds; the first text is not counted: it loads the model."""
    results = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for number in range(count + 1):
            tab = browser.new_page()
            tab.goto(address)
            tab.wait_for_selector("textarea")
            tab.evaluate(MEASURE)
            tab.locator("textarea").press_sequentially(TEXTS[number % len(TEXTS)], delay=delay)
            tab.wait_for_selector(".output .word", timeout=60_000)
            results.append(tab.evaluate("() => times"))
            tab.close()
        browser.close()
    return results[1:]


def report(results: list[dict[str, Any]]) -> None:
    """Print the median and the 95th percentile of each time."""
    for name, key in (("first letter", "first"), ("details", "words")):
        times = sorted(result[key] for result in results)
        high = times[min(len(times) - 1, int(0.95 * len(times)))]
        print(f"{name:14} median {statistics.median(times):6.0f} ms   95 %: {high:6.0f} ms   of {len(times)} texts")


if __name__ == "__main__":
    main()
