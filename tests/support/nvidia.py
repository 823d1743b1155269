"""A driver of NVIDIA that answers as it is told."""

from typing import Any

import pynvml


class MadeUpDriver:
    """The package over a driver whose cards know some answers; whatever else they are asked is not supported."""

    def __init__(self, *cards: dict[str, Any], fails: Exception | None = None) -> None:
        self.cards = cards
        self.fails = fails
        self.started = 0

    def nvmlInit(self) -> None:
        self.started += 1
        if self.fails:
            raise self.fails

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        if not self.cards[index]:
            raise pynvml.NVMLError_NoPermission
        return self.cards[index]

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.1"

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)
        if not name.startswith("nvmlDeviceGet"):
            return real

        def answer(card: dict[str, Any], *which: int) -> Any:
            if name not in card:
                raise pynvml.NVMLError_NotSupported
            return card[name][which[0]] if isinstance(card[name], dict) else card[name]

        return answer
