"""How requests come together on the way to a model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from regard.serving import batching
from regard.serving.batching import Batcher, JobOptions, TranslationJob
from regard.serving.compute import ComputeThread
from regard.serving.errors import RequestError
from regard.serving.metrics import ServerMetrics
from regard.tasks.translation.answer import Answer, Translation
from regard.tasks.translation.search_options import Search
from regard.text.glossary import Glossary


@dataclass
class FakeTranslator:
    """Writes texts in capitals, when it is let; those that begin with ! are a mistake."""

    batches: list[list[str]] = field(default_factory=list)
    may_go: threading.Event = field(default_factory=threading.Event)
    started: threading.Event = field(default_factory=threading.Event)
    search: Search = field(default_factory=Search)
    options: list[Any] = field(default_factory=list)

    def answers_of_parts(self, texts: Sequence[Any], *options: Any) -> list[Answer]:
        self.started.set()
        assert self.may_go.wait(10)
        plain = ["".join(text) for text in texts]
        self.batches.append(plain)
        self.options.append(options)
        if any(text.startswith("!") for text in plain):
            raise ValueError("a mistake")
        return [Answer(text, [Translation(text.upper(), 0.0, 0.0, [], content=[text.upper()])]) for text in plain]


class FakeModel:
    """A model in a compute thread."""

    def __init__(self, name: str = "fake") -> None:
        self.name, self.translator, self.compute = name, FakeTranslator(), ComputeThread()

    async def call(self, function: Callable[[Any], Any]) -> Any:
        return await self.compute.run(lambda: function(self.translator))


def job(model: Any, *texts: str, options: JobOptions | None = None, **more: Any) -> TranslationJob:
    def finish(answers: list[Answer]) -> list[str]:
        return [answer.text for answer in answers]

    return TranslationJob(model, [[text] for text in texts], options or JobOptions(), finish, **more)


async def under_way(model: FakeModel, batcher: Batcher) -> asyncio.Task[Any]:
    """Return a request that the model is busy with."""
    first = asyncio.create_task(batcher.run(job(model, "first")))
    await asyncio.to_thread(model.translator.started.wait, 10)
    return first


def test_requests_that_wait_are_translated_together() -> None:
    async def scenario() -> None:
        model, batcher, wide = FakeModel(), Batcher(ServerMetrics(), 100, 4), JobOptions(beam=9)
        first = await under_way(model, batcher)
        jobs = [job(model, "a", "b"), job(model, "c", options=wide), job(model, "d"), job(model, "e", "f")]
        tasks = [asyncio.create_task(batcher.run(each)) for each in jobs]
        await asyncio.sleep(0.01)
        assert len(batcher) == 4
        model.translator.may_go.set()
        assert await first == ["FIRST"]
        assert await asyncio.gather(*tasks) == [["A", "B"], ["C"], ["D"], ["E", "F"]]
        assert model.translator.batches == [["first"], ["a", "b", "d", "e"], ["c"], ["f"]]
        assert [options[0].beam for options in model.translator.options] == [5, 5, 9, 5]

    asyncio.run(scenario())


def test_a_large_request_lets_others_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        model, batcher = FakeModel(), Batcher(ServerMetrics(), 100, 4)
        model.translator.may_go.set()
        large = asyncio.create_task(batcher.run(job(model, *map(str, range(20)))))
        await asyncio.sleep(0)
        small = asyncio.create_task(batcher.run(job(model, "x")))
        assert await small == ["X"]
        assert not large.done()
        assert await large == list(map(str, range(20)))
        assert max(map(len, model.translator.batches)) == 4
        monkeypatch.setattr(batching, "MAX_BATCH_CHARACTERS", 10)
        model.translator.batches.clear()
        texts = ["a" * 6, "b" * 6, "c" * 30, "d", "e"]
        assert await batcher.run(job(model, *texts)) == [text.upper() for text in texts]
        assert model.translator.batches == [[texts[0]], [texts[1]], [texts[2]], ["d", "e"]]

    asyncio.run(scenario())


def test_a_mistake_spoils_its_own_request_alone() -> None:
    async def scenario() -> None:
        model, batcher = FakeModel(), Batcher(ServerMetrics(), 100, 64)
        first = await under_way(model, batcher)
        tasks = [asyncio.create_task(batcher.run(job(model, text))) for text in ("a", "!", "b")]
        tasks.append(asyncio.create_task(batcher.run(_broken(model))))
        await asyncio.sleep(0.01)
        model.translator.may_go.set()
        await first
        a, wrong, b, broken = await asyncio.gather(*tasks, return_exceptions=True)
        assert (a, b) == (["A"], ["B"])
        assert isinstance(wrong, ValueError) and str(wrong) == "a mistake"
        assert isinstance(broken, KeyError)

    asyncio.run(scenario())


def _broken(model: FakeModel) -> TranslationJob:
    def finish(answers: list[Answer]) -> Any:
        raise KeyError

    return TranslationJob(model, [["x"]], JobOptions(), finish)  # type: ignore[arg-type]


def test_clients_that_have_gone_are_dropped() -> None:
    async def scenario() -> None:
        async def gone() -> bool:
            return True

        model, metrics = FakeModel(), ServerMetrics()
        batcher = Batcher(metrics, 100, 64)
        first = await under_way(model, batcher)
        dropped = asyncio.create_task(batcher.run(job(model, "gone", is_gone=gone)))
        cancelled = asyncio.create_task(batcher.run(job(model, "cancelled")))
        last = asyncio.create_task(batcher.run(job(model, "last")))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        model.translator.may_go.set()
        assert await first == ["FIRST"] and await last == ["LAST"]
        assert model.translator.batches == [["first"], ["last"]]
        with pytest.raises(RequestError, match="disconnected"):
            await dropped
        assert metrics.dropped.values[()] == 1

    asyncio.run(scenario())


def test_a_full_queue_refuses() -> None:
    async def scenario() -> None:
        model, batcher = FakeModel(), Batcher(ServerMetrics(), 2, 64)
        first = await under_way(model, batcher)
        tasks = [asyncio.create_task(batcher.run(job(model, text))) for text in "ab"]
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError, match="too many requests") as error:
            await batcher.run(job(model, "c"))
        assert error.value.status == 503 and error.value.headers == {"Retry-After": "1"}
        model.translator.may_go.set()
        assert await asyncio.gather(first, *tasks) == [["FIRST"], ["A"], ["B"]]
        assert await batcher.run(job(model)) == []

    asyncio.run(scenario())


def test_a_glossary_for_each_request() -> None:
    async def scenario() -> None:
        model, batcher = FakeModel(), Batcher(ServerMetrics(), 100, 64)
        model.translator.search = Search(mbr=4)
        first = await under_way(model, batcher)
        options = JobOptions(has_terms=True)
        terms = [Glossary.of([("a", "b")]), Glossary.of([("c", "d")])]
        jobs = [
            job(model, "x", "y", options=options, glossary=terms[0]),
            job(model, "z", options=options, glossary=terms[1]),
        ]
        tasks = [asyncio.create_task(batcher.run(each)) for each in jobs]
        await asyncio.sleep(0.01)
        model.translator.may_go.set()
        await asyncio.gather(first, *tasks)
        assert [options[0].mbr for options in model.translator.options] == [4, 0]
        assert model.translator.options[1][3] == [terms[0], terms[0], terms[1]]

    asyncio.run(scenario())


def test_compute_thread_refuses_too_many() -> None:
    async def scenario() -> None:
        compute, may_go = ComputeThread(max_waiting=1), threading.Event()
        tasks = [asyncio.create_task(compute.run(may_go.wait)) for _ in range(2)]
        await asyncio.sleep(0.01)
        with pytest.raises(RequestError, match="too many requests"):
            await compute.run(lambda: None)
        may_go.set()
        assert await asyncio.gather(*tasks) == [True, True]
        compute.close()

    asyncio.run(scenario())
