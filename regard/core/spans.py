"""Sorted, disjoint, half-open runs of key positions: the currency in which patterns list what they keep.

A list of spans `[(lo, hi), ...]` costs O(runs), however many keys the runs hold.
"""

from collections.abc import Iterable

Span = tuple[int, int]
Spans = tuple[Span, ...]


def union(*lists: Iterable[Span]) -> Spans:
    """Every position that is in any of the lists; touching runs are joined."""
    joined: list[Span] = []
    for lo, hi in sorted(span for spans in lists for span in spans if span[0] < span[1]):
        if joined and lo <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(hi, joined[-1][1]))
        else:
            joined.append((lo, hi))
    return tuple(joined)


def intersection(left: Spans, right: Spans) -> Spans:
    """Every position that is in both lists."""
    common: list[Span] = []
    a = b = 0
    while a < len(left) and b < len(right):
        lo, hi = max(left[a][0], right[b][0]), min(left[a][1], right[b][1])
        if lo < hi:
            common.append((lo, hi))
        if left[a][1] < right[b][1]:
            a += 1
        else:
            b += 1
    return tuple(common)


def difference(left: Spans, right: Spans) -> Spans:
    """Every position of `left` that is not in `right`."""
    kept: list[Span] = []
    b = 0
    for start, stop in left:
        lo = start
        while b < len(right) and right[b][1] <= lo:
            b += 1
        at = b
        while at < len(right) and right[at][0] < stop:
            if lo < right[at][0]:
                kept.append((lo, right[at][0]))
            lo = max(lo, right[at][1])
            at += 1
        if lo < stop:
            kept.append((lo, stop))
    return tuple(kept)


def clip(spans: Iterable[Span], size: int) -> Spans:
    """The part of the spans that lies in 0 … size − 1."""
    bounded = ((max(lo, 0), min(hi, size)) for lo, hi in spans)
    return tuple(span for span in bounded if span[0] < span[1])


def runs(positions: Iterable[int]) -> Spans:
    """Spans of single positions: runs([0, 1, 5]) is ((0, 2), (5, 6))."""
    return union((p, p + 1) for p in positions)


def length(spans: Spans) -> int:
    """How many positions the spans hold."""
    return sum(hi - lo for lo, hi in spans)
