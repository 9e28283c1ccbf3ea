"""A made-up NVML: eight cards whose memory and load follow the simulated servers' real processes.

Names, signatures, units and exceptions are those of nvidia-ml-py's ``pynvml``. It runs inside the agent:
Python 3.6, standard library only. A card's memory is freed when the processes that hold it are really dead.
"""

import math
import time
import types
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]

MIB = 1 << 20
CARDS = 8
NAME = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
DRIVER = "580.159.04"
TOTAL_MIB = 97887
RESERVED_MIB = 615
POWER_LIMIT_W = 600
MAX_SM_MHZ = 2617
WARMS_S = 20.0
"""Seconds of the host in which a card comes two thirds of the way to the warmth of a new load."""
FRESH = 0.1
"""Real seconds for which one look at the processes is good: a monitor asks eight cards many questions."""
IDLE = {"util": [0, 0], "watts": [33, 2], "temp": 31, "mhz": 180}  # type: Json
"""A card without a process: (middle, spread) where it flickers."""

ERRORS = {
    1: "Uninitialized",
    2: "Invalid Argument",
    3: "Not Supported",
    4: "Insufficient Permissions",
    6: "Not Found",
    7: "Insufficient Size",
    9: "Driver Not Loaded",
    10: "Timeout",
    12: "NVML Shared Library Not Found",
    13: "Function Not Found",
    15: "GPU is lost",
    999: "Unknown Error",
}


class NVMLError(Exception):
    """Base of all; ``value`` is NVML's code."""

    value = 999

    def __init__(self, value: "int | None" = None) -> None:
        if value is not None:
            self.value = value
        super().__init__(ERRORS.get(self.value, "Unknown Error"))


def _error_classes() -> "dict[str, type[NVMLError]]":
    return {
        "NVMLError_" + name: type("NVMLError_" + name, (NVMLError,), {"value": code})
        for code, name in (
            (1, "Uninitialized"),
            (2, "InvalidArgument"),
            (3, "NotSupported"),
            (15, "GpuIsLost"),
        )
    }


class Cards:
    """What the cards look like at this moment."""

    def __init__(self, now: "Callable[[], float]", servers: "Callable[[], list[Json]]", proc: str) -> None:
        self._now = now
        self._servers = servers
        self._proc = proc
        self._looked_at = 0.0
        self._owners = {}  # type: dict[int, list[tuple[int, int]]]
        self._moods = {}  # type: dict[int, Json]
        self._warmth = {}  # type: dict[int, tuple[float, float]]

    def owners(self, index: int) -> "list[tuple[int, int]]":
        """(pid as NVML names it, MiB) of everything that still holds memory on a card."""
        self._look()
        return self._owners.get(index, [])

    def mood(self, index: int) -> "Json":
        """How busy the card looks: as the newest living server on it says."""
        self._look()
        return self._moods.get(index, IDLE)

    def warmth(self, index: int) -> float:
        """Degrees: the load may jump, the temperature follows it."""
        now, wanted = self._now(), float(self.mood(index)["temp"])
        was, at = self._warmth.get(index, (wanted, now))
        is_now = wanted + (was - wanted) * math.exp(-max(0.0, now - at) / WARMS_S)
        self._warmth[index] = (is_now, now)
        return is_now

    def flicker(self, index: int, pair: "list[float]", salt: int) -> float:
        """A value around its middle, the same for everyone who asks in the same second."""
        x = (int(self._now()) * 2654435761 + index * 40503 + salt * 9973) & 0xFFFFFFFF
        x = ((x ^ (x >> 15)) * 2246822519) & 0xFFFFFFFF
        return float(pair[0] + pair[1] * ((x >> 8) % 2001 / 1000.0 - 1.0))

    def _look(self) -> None:
        if 0 <= time.monotonic() - self._looked_at < FRESH:
            return
        # Whole or not at all: the agent asks from several threads, and half a look is cards without an owner.
        owners, moods = {}, {}  # type: dict[int, list[tuple[int, int]]], dict[int, Json]
        for state in self._servers():
            for share in state["shares"]:
                # NVML goes on naming the process that made the context, even when only a fork of it is left.
                if any(is_alive(self._proc, *who) for who in share["held_by"]):
                    owners.setdefault(share["gpu"], []).append((share["pid"], share["mib"]))
                    mood = state["moods"].get(str(share["gpu"]))
                    if mood and is_alive(self._proc, share["pid"], share["held_by"][0][1]):
                        moods[share["gpu"]] = mood
        self._owners, self._moods, self._looked_at = owners, moods, time.monotonic()


def is_alive(proc: str, pid: int, start: int) -> bool:
    """Whether this very process still runs (one that only waits to be reaped holds nothing)."""
    try:
        fields = Path(proc, str(pid), "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return False
    return len(fields) > 19 and fields[0] not in (b"Z", b"X") and int(fields[19]) == start


def record(**fields: "Any") -> "types.SimpleNamespace":
    """A struct as the binding returns them."""
    return types.SimpleNamespace(**fields)


def uuid(index: int) -> str:
    """A card's identity, the same in every simulation."""
    return f"GPU-5bd4c1a{index}-7e0f-4b57-9d3c-0000000000{0xA0 + index:02x}"


class _Binding:
    """The functions of ``pynvml``, by their names there."""

    def __init__(self, cards: Cards) -> None:
        self._cards = cards

    def nvmlInit(self) -> None:
        return None

    def nvmlShutdown(self) -> None:
        return None

    def nvmlErrorString(self, value: int) -> str:
        return ERRORS.get(value, "Unknown Error")

    def nvmlSystemGetDriverVersion(self) -> str:
        return DRIVER

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return CARDS

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if not 0 <= index < CARDS:
            raise NVMLError(2)
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return uuid(handle)

    def nvmlDeviceGetName(self, handle: int) -> str:
        return NAME

    def nvmlDeviceGetIndex(self, handle: int) -> int:
        return handle

    def nvmlDeviceGetMinorNumber(self, handle: int) -> int:
        return handle

    def nvmlDeviceGetPciInfo(self, handle: int) -> "Any":
        bus = 0x01 + 0x20 * handle
        text = f"00000000:{bus:02X}:00.0"
        return record(busId=text, busIdLegacy=text[4:], domain=0, bus=bus, device=0)

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: "Any" = None) -> "Any":
        used = sum(mib for _, mib in self._cards.owners(handle)) * MIB
        total, reserved = TOTAL_MIB * MIB, RESERVED_MIB * MIB
        if version is None:  # the first version counts what the driver keeps as used
            return record(total=total, used=used + reserved, free=total - reserved - used)
        return record(
            version=version, total=total, used=used, reserved=reserved, free=total - reserved - used
        )

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> "Any":
        busy = self._cards.flicker(handle, self._cards.mood(handle)["util"], 1)
        busy = min(100, max(0, round(busy)))
        return record(gpu=busy, memory=busy * 2 // 5)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        return int(self._cards.flicker(handle, self._cards.mood(handle)["watts"], 2) * 1000)

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return POWER_LIMIT_W * 1000

    def nvmlDeviceGetPowerManagementLimit(self, handle: int) -> int:
        return POWER_LIMIT_W * 1000

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int = 0) -> int:
        # The card in the hottest slot is a few degrees above the one at the fans.
        return round(self._cards.warmth(handle)) + handle % 4

    def nvmlDeviceGetTemperatureV(self, handle: int, sensor: int = 0) -> int:
        return round(self._cards.warmth(handle)) + handle % 4

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        return 12481 if kind == 2 else int(self._cards.mood(handle)["mhz"])

    def nvmlDeviceGetMaxClockInfo(self, handle: int, kind: int) -> int:
        return 12481 if kind == 2 else MAX_SM_MHZ

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:
        return 1 if self._cards.mood(handle) is IDLE else 0  # 1: nothing runs, so the clock is low

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:
        return int(self.nvmlDeviceGetCurrentClocksEventReasons(handle))

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> "list[Any]":
        return [
            record(pid=pid, usedGpuMemory=mib * MIB, gpuInstanceId=0xFFFFFFFF, computeInstanceId=0xFFFFFFFF)
            for pid, mib in self._cards.owners(handle)
        ]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: int) -> "list[Any]":
        return []

    def nvmlDeviceGetMigMode(self, handle: int) -> "list[int]":
        return [0, 0]

    def nvmlDeviceGetEccMode(self, handle: int) -> "list[int]":
        return [1, 1]

    def nvmlDeviceGetTotalEccErrors(self, handle: int, kind: int, counter: int) -> int:
        return 0

    def nvmlDeviceGetRemappedRows(self, handle: int) -> "tuple[int, int, int, int]":
        return (0, 0, 0, 0)

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:
        raise NVMLError(3)  # these cards have none

    def nvmlDeviceGetPerformanceState(self, handle: int) -> int:
        return 8 if self._cards.mood(handle) is IDLE else 0

    def nvmlDeviceGetPersistenceMode(self, handle: int) -> int:
        return 1


def module(now: "Callable[[], float]", servers: "Callable[[], list[Json]]", proc: str) -> "Any":
    """An object with the functions and constants of ``pynvml`` that a monitor asks for."""
    binding = _Binding(Cards(now, servers, proc))
    made = types.ModuleType("pynvml")
    vars(made).update({name: getattr(binding, name) for name in dir(binding) if name.startswith("nvml")})
    for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"):
        for suffix in ("_v2", "_v3"):
            setattr(made, name + suffix, getattr(binding, name))
    vars(made).update(CONSTANTS)
    vars(made).update(_error_classes(), NVMLError=NVMLError)
    return made


CONSTANTS = {
    "NVML_SUCCESS": 0,
    "NVML_ERROR_NOT_SUPPORTED": 3,
    "NVML_ERROR_NO_PERMISSION": 4,
    "NVML_ERROR_GPU_IS_LOST": 15,
    "NVML_TEMPERATURE_GPU": 0,
    "NVML_CLOCK_GRAPHICS": 0,
    "NVML_CLOCK_SM": 1,
    "NVML_CLOCK_MEM": 2,
    "NVML_VALUE_NOT_AVAILABLE_ulonglong": 0xFFFFFFFFFFFFFFFF,
    "NVML_VALUE_NOT_AVAILABLE_uint": 0xFFFFFFFF,
    "nvmlMemory_v2": 0x02000028,
}
