"""Takes the time of a model's parts while an engine works, by wrapping their methods for as long as a block lasts."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

NS_PER_US = 1_000


@dataclass(slots=True)
class Pass:
    """One call of the model as a whole and what its parts took."""

    label: str
    """What kind of call it was."""
    began_ns: int
    whole_ns: int = 0
    parts_ns: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def part_us(self, part: str) -> float:
        """All calls of a part in this pass."""
        return self.parts_ns.get(part, 0) / NS_PER_US

    @property
    def whole_us(self) -> float:
        """The call itself."""
        return self.whole_ns / NS_PER_US


class Stopwatch:
    """Collects passes."""

    def __init__(self) -> None:
        self.passes: list[Pass] = []
        self._restore: list[tuple[Any, str]] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """What was to be watched is watched inside the block, and as it was behind it."""
        try:
            yield
        finally:
            for owner, name in self._restore:
                delattr(owner, name)
            self._restore.clear()

    def watch_whole(self, owner: Any, name: str, label: Callable[..., str]) -> None:
        """Each call of this method begins a pass; `label` is given the call's arguments."""
        method = getattr(owner, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            taken = Pass(label=label(*arguments, **options), began_ns=time.perf_counter_ns())
            self.passes.append(taken)
            result = method(*arguments, **options)
            taken.whole_ns = time.perf_counter_ns() - taken.began_ns
            return result

        self._replace(owner, name, timed)

    def watch_part(self, owner: Any, name: str, part: str) -> None:
        """Each call of this method is added to a part of the newest pass."""
        method = getattr(owner, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            began_ns = time.perf_counter_ns()
            result = method(*arguments, **options)
            if self.passes:
                self.passes[-1].parts_ns[part] += time.perf_counter_ns() - began_ns
            return result

        self._replace(owner, name, timed)

    def _replace(self, owner: Any, name: str, timed: Callable[..., Any]) -> None:
        # On the object, in front of the class's method: taking it away brings that back.
        object.__setattr__(owner, name, timed)
        self._restore.append((owner, name))
