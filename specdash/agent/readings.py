"""What is asked of one card, and what NVML's answers mean. Never PCIe throughput: it blocks 21 ms a call."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]

UNINITIALIZED, NOT_SUPPORTED, INSUFFICIENT_SIZE, DRIVER_NOT_LOADED = 1, 3, 7, 9
LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, LOST, NEEDS_RESET, MISMATCH = 12, 13, 15, 16, 18
VERSION_MISMATCH, UNKNOWN = 25, 999

WORDS = {
    1: "NVML is not initialised",
    4: "no permission",
    9: "no NVIDIA driver is loaded",
    10: "time-out in the driver",
    12: "no NVIDIA driver library (libnvidia-ml.so.1)",
    15: "GPU is lost",
    16: "GPU requires a reset",
    17: "GPU access blocked by the operating system",
    18: "driver/library version mismatch: the driver was updated but not reloaded",
    20: "out of memory in the driver",
    28: "the driver finds no GPU",
    999: "Unknown Error",
}

THROTTLES = (
    (0x2, "application clocks"),
    (0x4, "power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "software thermal"),
    (0x40, "hardware thermal"),
    (0x80, "power brake"),
    (0x100, "display clocks"),
)
"""Bits of nvmlDeviceGetCurrentClocksEventReasons (NVML API reference). 0x1, idle, slows nothing down."""

SLOW = 30.0
"""Seconds between readings of what hardly changes and costs milliseconds: limits, maxima, MIG."""

MAX_PID = 4194304
"""The kernel's highest possible pid (2^22): more is a sign of a wrong struct layout."""


def text(value: "bytes | str") -> str:
    """NVML strings are bytes in old bindings."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def code_of(error: Exception) -> int:
    """The NVML return code behind an exception of the binding."""
    code = getattr(error, "value", UNKNOWN)
    return code if isinstance(code, int) else UNKNOWN


def say(code: "int | None", error: "Exception | None" = None) -> str:
    """An NVML code in words."""
    return WORDS.get(code or 0) or (str(error) if error else "NVML error %s" % code)


def say_init(error: Exception) -> str:
    """Why NVML cannot be initialised."""
    code = code_of(error) if hasattr(error, "value") else None
    if code is None:
        return "NVML: %s: %s" % (type(error).__name__, error)
    if code == UNKNOWN:
        return "NVML: Unknown Error (a container that has lost its devices says this: recreate it)"
    return say(code, error) if code in (DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND) else "NVML: " + say(code, error)


def identity(nvml: "Any", handle: "Any") -> "Json":
    """UUID, name and PCI address, as far as the driver tells them."""
    calls = (("uuid", "nvmlDeviceGetUUID"), ("name", "nvmlDeviceGetName"), ("bus", "nvmlDeviceGetPciInfo"))
    answers = [(name, _identity(nvml, handle, call)) for name, call in calls]
    return {name: answer for name, answer in answers if answer is not None}


def _identity(nvml: "Any", handle: "Any", call: str) -> "str | None":
    try:
        value = getattr(nvml, call)(handle)
    except AttributeError:
        return None  # a made-up binding need not know it
    except nvml.NVMLError as error:
        if code_of(error) in (LOST, NEEDS_RESET):
            raise
        return None
    return text(getattr(value, "busId", value))


def utilisation(nvml: "Any", handle: "Any") -> "Json":
    """Share of the last sample period in which a kernel ran."""
    return {"util": int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)}


def power(nvml: "Any", handle: "Any") -> "Json":
    """Watts."""
    return {"power_w": nvml.nvmlDeviceGetPowerUsage(handle) / 1000.0}


def power_limit(nvml: "Any", handle: "Any") -> "Json":
    """Watts at which the card is held."""
    return {"power_limit_w": nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000.0}


def temperature(nvml: "Any", handle: "Any") -> "Json":
    """Degrees Celsius of the die."""
    return {"temp_c": int(nvml.nvmlDeviceGetTemperature(handle, 0))}


def clock(nvml: "Any", handle: "Any") -> "Json":
    """SM clock in MHz."""
    return {"sm_mhz": int(nvml.nvmlDeviceGetClockInfo(handle, 1))}


def clock_max(nvml: "Any", handle: "Any") -> "Json":
    """Highest SM clock in MHz."""
    return {"sm_max_mhz": int(nvml.nvmlDeviceGetMaxClockInfo(handle, 1))}


def throttle(nvml: "Any", handle: "Any") -> "Json":
    """Why the clocks are held down."""
    try:
        bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except AttributeError:
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    except nvml.NVMLError as error:
        if code_of(error) != FUNCTION_NOT_FOUND:
            raise
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return {"throttle": [word for bit, word in THROTTLES if bits & bit]}


def mig(nvml: "Any", handle: "Any") -> "Json":
    """Whether the card is cut into MIG instances; absent where it cannot be."""
    try:
        return {"mig": bool(nvml.nvmlDeviceGetMigMode(handle)[0])}
    except nvml.NVMLError as error:
        if code_of(error) in (LOST, NEEDS_RESET):
            raise
        return {}
    except AttributeError:
        return {}


def processes(nvml: "Any", handle: "Any") -> "Json":
    """pid and MiB (None: not told) of each process with a compute context."""
    try:
        listed = _compute_list(nvml, handle)
    except nvml.NVMLError as error:
        if code_of(error) != INSUFFICIENT_SIZE:
            raise
        listed = _compute_list(nvml, handle)  # processes appeared between the two calls inside
    found = {}
    for process in listed:
        pid, size = process.pid, process.usedGpuMemory  # the binding works at each of them
        if not 0 < pid <= MAX_PID:
            return {}  # the driver's struct is laid out otherwise: no list is better than a wrong one
        found[int(pid)] = None if size is None else int(size) >> 20
    return {"processes": [{"pid": pid, "mib": found[pid]} for pid in sorted(found)]}


def _compute_list(nvml: "Any", handle: "Any") -> "Any":
    try:
        return nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError as error:
        if code_of(error) != FUNCTION_NOT_FOUND:
            raise
    except nvml.NVMLLibraryMismatchError:
        pass  # how nvidia-ml-py puts a driver that lacks the third version (before 510)
    return nvml.nvmlDeviceGetComputeRunningProcesses_v2(handle)


class Readings(object):
    """The readings of one card, which of them it does not support, and what is being asked right now."""

    def __init__(self) -> None:
        self.doing = "handle"
        self._unsupported: "list[str]" = []
        self._old_memory = False
        self._slow: "Json" = {}
        self._slow_due = 0.0
        self._fast = (
            ("memory", ("total_mib", "used_mib"), self._memory),
            ("utilisation", ("util",), utilisation),
            ("power", ("power_w",), power),
            ("temperature", ("temp_c",), temperature),
            ("clock", ("sm_mhz",), clock),
            ("throttle reasons", ("throttle",), throttle),
            ("processes", ("processes",), processes),
        )

    def read(self, nvml: "Any", handle: "Any", now: float) -> "Json":
        """Everything this card tells; raises NVMLError when the whole card is gone."""
        errors: "list[str]" = []
        values = self._ask(nvml, handle, self._fast, errors)
        if now >= self._slow_due:
            self._slow_due = now + SLOW
            self._slow = self._ask(nvml, handle, RARELY, errors)
        values.update(self._slow)
        if self._unsupported:
            values["missing"] = list(self._unsupported)
        if errors:
            values["error"] = "; ".join(errors)
        return values

    def _ask(self, nvml: "Any", handle: "Any", table: "Any", errors: "list[str]") -> "Json":
        values: "Json" = {}
        last = Exception()
        asked = failed = 0
        for word, names, ask in table:
            if names[0] in self._unsupported:
                continue
            self.doing = word
            asked += 1
            try:
                values.update(ask(nvml, handle))
            except AttributeError:
                self._unsupported.extend(names)  # a binding that does not know the call
            except nvml.NVMLError as error:
                code = code_of(error)
                if code in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                    self._unsupported.extend(names)
                    continue
                failed += 1
                if code in (LOST, NEEDS_RESET):
                    raise
                errors.append("%s: %s" % (word, say(code, error)))
                last = error
        if failed > 1 and failed == asked:
            raise last
        return values

    def _memory(self, nvml: "Any", handle: "Any") -> "Json":
        """v2 tells the driver's reserve apart; v1 counts it as used (615 MiB on an idle H200)."""
        if not self._old_memory:
            try:
                info = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
                used = max(0, info.total - info.free - info.reserved)
                return {"total_mib": info.total >> 20, "used_mib": used >> 20, "memory_call": "v2"}
            except nvml.NVMLError as error:
                if code_of(error) not in (FUNCTION_NOT_FOUND, VERSION_MISMATCH):
                    raise
                self._old_memory = True
            except (AttributeError, TypeError):
                self._old_memory = True
        info = nvml.nvmlDeviceGetMemoryInfo(handle)
        return {"total_mib": info.total >> 20, "used_mib": info.used >> 20, "memory_call": "v1"}


RARELY: "tuple[tuple[str, tuple[str, ...], Callable[[Any, Any], Json]], ...]" = (
    ("power limit", ("power_limit_w",), power_limit),
    ("highest clock", ("sm_max_mhz",), clock_max),
    ("MIG mode", ("mig",), mig),
)
