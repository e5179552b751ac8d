"""Who may use a server: the Host and Origin of a request, its API key, and how often a client may ask."""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from regard.serving.errors import RequestError
from regard.serving.settings import ServerSettings

LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))
KEY_COOKIE = "regard_key"
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
MAX_CLIENTS = 10_000  # whose requests are counted; the one that asked longest ago is forgotten
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?")

Headers = Mapping[str, str]  # by their names in lower case


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens on an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class HostRule:
    """Which names a request may call the server by.

    A page of another site can make its own name lead to this machine (DNS rebinding), and then it counts for the
    browser as that site. An address in place of a name cannot be rebound.
    """

    names: frozenset[str]
    any_address: bool  # whether every IP address is a name of the server

    @classmethod
    def of(cls, settings: ServerSettings) -> HostRule:
        host = settings.host.lower()
        own = {host, f"[{host}]"} if ":" in host else {host}
        if not is_loopback(host):
            own.add(socket.gethostname().lower())
        names = LOOPBACK | own | {name.lower() for name in settings.allowed_hosts}
        return cls(frozenset(names), not is_loopback(host))

    def check(self, headers: Headers) -> None:
        """Raise a RequestError for a Host header that is not one of the server's."""
        given = headers.get("host", "")
        match = _HOST.fullmatch(given)
        name = match[1].lower().removesuffix(".") if match else ""
        if name in self.names or (self.any_address and _is_address(name)):
            return
        raise RequestError(403, f"Host: {given[:100]!r} is not a name of this server; --allow-host allows it")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def check_origin(headers: Headers, allowed: frozenset[str]) -> None:
    """Raise a RequestError for a request that a page of another origin sent, unless that is allowed.

    Programs send no Origin; browsers send it with every request that can change something.
    """
    origin = headers.get("origin")
    if origin is None or origin in allowed or "*" in allowed:
        return
    try:
        same = urlsplit(origin).scheme in ("http", "https") and urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        same = False
    if not same:
        raise RequestError(403, f"Origin: {origin[:100]!r} is not this server's; --allow-origin allows it")


class KeyRule:
    """The API keys of a server; without any, every request is allowed."""

    def __init__(self, keys: frozenset[str]) -> None:
        self._keys = [key.encode() for key in keys]

    @property
    def required(self) -> bool:
        return bool(self._keys)

    def is_valid(self, key: object) -> bool:
        """Return whether this is one of the keys, in a time that does not tell how much of it is right."""
        given = key.encode("utf-8", "replace") if isinstance(key, str) else b""
        matches = [hmac.compare_digest(given, each) for each in self._keys]
        return any(matches)

    def allows(self, headers: Headers, query: str) -> bool:
        """Return whether no key is needed, or one is in a header, in the page's cookie or in the query string."""
        if not self._keys:
            return True
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        return any(map(self.is_valid, (bearer, headers.get("x-api-key"), _cookie(headers), query_key(query))))


def query_key(query: str) -> str | None:
    """Return the key in a query string."""
    return parse_qs(query, max_num_fields=100).get("api_key", [None])[0] if "api_key" in query else None


def _cookie(headers: Headers) -> str | None:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(KEY_COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie else None


class RateLimiter:
    """Counts the requests of each client: as many as allowed in a minute at once, then one by one as time goes on."""

    def __init__(self, per_minute: int | None) -> None:
        self._per_minute = per_minute
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and when that was so

    def count(self, client: str) -> None:
        """Count a request; raise a RequestError with the time to wait if there were too many."""
        if self._per_minute is None:
            return
        now, per_second = time.monotonic(), self._per_minute / 60
        left, before = self._clients.pop(client, (float(self._per_minute), now))
        left = min(float(self._per_minute), left + (now - before) * per_second)
        allowed = left >= 1
        self._clients[client] = (left - 1 if allowed else left), now
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        if not allowed:
            seconds = int((1 - left) / per_second) + 1
            message = f"slow down: at most {self._per_minute} requests a minute; try again in {seconds} s"
            raise RequestError(429, message, {"Retry-After": str(seconds)})
