"""Where answers are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import redis
from prometheus_client import Counter

from cdc_lakehouse.errors import UserError

errors = Counter("cdc_lakehouse_api_cache_errors", "Calls that Redis did not answer")
BYTES_IN_MEMORY = 64 << 20
SECONDS_FOR_REDIS = 1


class Memory:
    """This process's memory, up to a size; what was not asked for longest goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, name: str) -> bytes | None:
        """What was kept last by this name, or None."""
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
            return self._kept.get(name)

    def put(self, name: str, content: bytes) -> None:
        """Keep it in place of what was kept before."""
        with self._lock:
            self._size += len(content) - len(self._kept.pop(name, b""))
            self._kept[name] = content
            while self._size > BYTES_IN_MEMORY:
                self._size -= len(self._kept.popitem(last=False)[1])


class Redis:
    """A Redis at ``redis://…``, which processes may share; while it is away, nothing."""

    def __init__(self, url: str) -> None:
        seconds = SECONDS_FOR_REDIS
        try:
            self._client = redis.Redis.from_url(
                url, socket_timeout=seconds, socket_connect_timeout=seconds
            )
        except ValueError as error:
            raise UserError(f"REDIS_URL: {error}") from error

    def get(self, name: str) -> bytes | None:
        """What was kept last by this name, or None."""
        try:
            found: Any = self._client.get(f"cdc-lakehouse:{name}")
        except redis.RedisError:
            errors.inc()
            return None
        return None if found is None else bytes(found)

    def put(self, name: str, content: bytes) -> None:
        """Keep it in place of what was kept before."""
        try:
            self._client.set(f"cdc-lakehouse:{name}", content)
        except redis.RedisError:
            errors.inc()


Cache = Memory | Redis
