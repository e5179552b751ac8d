"""Spans: sorted, disjoint, half-open runs of key positions, with which patterns list what they allow.

Operations on spans `[(lo, hi), ...]` cost O(runs), however many keys the runs contain.
"""

from collections.abc import Iterable

Span = tuple[int, int]
Spans = tuple[Span, ...]


def union(*lists: Iterable[Span]) -> Spans:
    """Return every position that is in any of the lists; adjacent runs are merged."""
    merged: list[Span] = []
    for lo, hi in sorted(span for spans in lists for span in spans if span[0] < span[1]):
        if merged and lo <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
        else:
            merged.append((lo, hi))
    return tuple(merged)


def intersection(left: Spans, right: Spans) -> Spans:
    """Return every position that is in both lists."""
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
    """Return every position of `left` that is not in `right`."""
    remaining: list[Span] = []
    b = 0
    for start, stop in left:
        lo = start
        while b < len(right) and right[b][1] <= lo:
            b += 1
        at = b
        while at < len(right) and right[at][0] < stop:
            if lo < right[at][0]:
                remaining.append((lo, right[at][0]))
            lo = max(lo, right[at][1])
            at += 1
        if lo < stop:
            remaining.append((lo, stop))
    return tuple(remaining)


def clip(spans: Iterable[Span], size: int) -> Spans:
    """Return the part of the spans that lies in 0 … size − 1."""
    bounded = ((max(lo, 0), min(hi, size)) for lo, hi in spans)
    return tuple(span for span in bounded if span[0] < span[1])


def runs(positions: Iterable[int]) -> Spans:
    """Return the spans of individual positions: runs([0, 1, 5]) is ((0, 2), (5, 6))."""
    return union((p, p + 1) for p in positions)


def length(spans: Spans) -> int:
    """Return how many positions the spans contain."""
    return sum(hi - lo for lo, hi in spans)
