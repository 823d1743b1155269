"""A driver of NVIDIA that answers as it is told."""

from typing import Any

import pynvml


class MadeUpDriver:
    """The package over a driver whose GPUs know some answers; whatever else they are asked is not supported."""

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

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:
        for card in self.cards:
            for part in (card, *card.get("nvmlDeviceGetMigDeviceHandleByIndex", {}).values()):
                if part.get("nvmlDeviceGetUUID") == uuid:
                    return part
        raise pynvml.NVMLError_NotFound

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, part: dict[str, Any]) -> dict[str, Any]:
        return next(card for card in self.cards if part in card.get("nvmlDeviceGetMigDeviceHandleByIndex", {}).values())

    def nvmlDeviceGetGpuFabricInfo(self, card: dict[str, Any], info: Any) -> None:
        if "nvmlDeviceGetGpuFabricInfo" not in card:
            raise pynvml.NVMLError_NotSupported
        info._obj.state = card["nvmlDeviceGetGpuFabricInfo"]

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.1"

    def _lock(self, card: dict[str, Any], mhz: tuple[int, ...]) -> None:
        if not card.get("lockable"):
            raise pynvml.NVMLError_NoPermission
        card["locked"] = mhz

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)
        if name in ("nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"):
            return lambda card, *mhz: self._lock(card, mhz)
        if not name.startswith("nvmlDeviceGet"):
            return real

        def answer(card: dict[str, Any], *which: int) -> Any:
            if name not in card:
                raise pynvml.NVMLError_NotSupported
            if not isinstance(card[name], dict):
                return card[name]
            if which[0] not in card[name]:
                raise pynvml.NVMLError_NotFound
            return card[name][which[0]]

        return answer
