"""Claims: one owner at a time, and those of the dead are taken over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

from regard.batch.claims import MAX_ATTEMPTS, STALE_SECONDS, Claim, Claims, Exhausted, Owner, remove_claims


def taken(claims: Claims, name: str = "0000/0000001") -> Claim:
    claim = claims.take(name)
    assert isinstance(claim, Claim)
    return claim


def note_owner(claim: Claim, owner: Owner) -> None:
    """Let a claim be that of another process, with the same mtime."""
    status = claim.file.stat()
    claim.file.write_text(json.dumps(asdict(owner)))
    os.utime(claim.file, ns=(status.st_mtime_ns, status.st_mtime_ns))


def test_one_of_many_threads_gets_a_claim(tmp_path: Path) -> None:
    for round_ in range(20):
        claims, start = [], threading.Barrier(8)

        def take(name: str = str(round_), claims: list[object] = claims, start: threading.Barrier = start) -> None:
            start.wait()
            claims.append(Claims(tmp_path).take(name))

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(claim, Claim) for claim in claims) == 1


def test_released_and_finished_claims_leave_nothing(tmp_path: Path) -> None:
    claims = Claims(tmp_path)
    first = taken(claims)
    assert first.attempt == 1 and claims.take("0000/0000001") is None
    first.release()
    assert taken(claims).attempt == 1
    first.fail("no luck")
    second = taken(claims)
    assert second.attempt == 2
    second.finish()
    assert not list((tmp_path / "0000").iterdir())


def test_a_process_of_this_machine_that_is_gone_loses_its_claim_at_once(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    claim, here = taken(Claims(tmp_path)), Owner.current()
    assert not here.is_gone() and Claims(tmp_path).take("0000/0000001") is None
    note_owner(claim, replace(here, started="1"))  # its process id belongs to another process now
    assert taken(Claims(tmp_path)).attempt == 2
    Claim(claim.path, 2).release()
    note_owner(claim, replace(here, pid=ended.pid))
    assert taken(Claims(tmp_path)).attempt == 2


def test_a_zombie_is_gone(tmp_path: Path) -> None:
    script = f"from regard.batch.claims import *; Claims(Path({str(tmp_path)!r})).take('0000/0000001')"
    process = subprocess.Popen([sys.executable, "-c", script])
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    assert taken(Claims(tmp_path)).attempt == 2
    process.wait()


def test_a_process_elsewhere_loses_its_claim_without_heartbeats(tmp_path: Path) -> None:
    now = [0.0]
    claims = Claims(tmp_path, lambda: now[0])
    claim = taken(claims)
    note_owner(claim, replace(Owner.current(), machine="another"))
    os.utime(claim.file, (0, 0))  # its clock is decades behind: that means nothing
    assert claims.take("0000/0000001") is None
    now[0] = STALE_SECONDS - 1
    assert claims.take("0000/0000001") is None
    claim.touch()  # a heartbeat
    now[0] = STALE_SECONDS + 1
    assert claims.take("0000/0000001") is None
    now[0] += STALE_SECONDS + 1
    assert taken(claims).attempt == 2


def test_an_empty_note_counts_by_its_heartbeats(tmp_path: Path) -> None:
    """Its owner was killed before it wrote its name."""
    now = [0.0]
    claims = Claims(tmp_path, lambda: now[0])
    taken(claims).file.write_text("")
    assert claims.take("0000/0000001") is None
    now[0] = STALE_SECONDS + 1
    assert taken(claims).attempt == 2


def test_heartbeats_touch_the_file(tmp_path: Path) -> None:
    claim = taken(Claims(tmp_path))
    os.utime(claim.file, (0, 0))
    with claim.heartbeat(0.01):
        while claim.file.stat().st_mtime == 0:
            time.sleep(0.005)
        claim.finish()
        time.sleep(0.03)  # a file that is gone does not come back
    assert not claim.file.exists()


def test_attempts_are_limited_and_the_last_reason_is_given(tmp_path: Path) -> None:
    claims = Claims(tmp_path)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        claim = taken(claims)
        assert claim.attempt == attempt
        claim.fail(f"reason {attempt}")
    assert claims.take("0000/0000001") == Exhausted(f"reason {MAX_ATTEMPTS}")
    assert isinstance(claims.take("0000/0000001", max_attempts=None), Claim)
    remove_claims(tmp_path, "0000/0000001")
    (tmp_path / f"0000/0000001.{MAX_ATTEMPTS + 1}").unlink()
    assert taken(claims).attempt == 1
