"""Make our recordings from the raw folders: ``python -m tests.recordings.convert RAW [OUT]``.

RAW holds run3-S1-S6, run4-S2-S3-S4 and sglang/run1, sglang/run2. Six files are written to OUT (this folder).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from specdash.history.recording import SUFFIX, Recorder
from specdash.monitor.frames import AnyFrame
from tests.recordings import sglang, vllm

EPOCH = 1795960000.0
"""The zero of the times in the truth table."""


def main(raw: Path, out: Path) -> None:
    """Write all of them."""
    run1, run2 = raw / "sglang" / "run1", raw / "sglang" / "run2"
    _write(out, "vllm-run3-s1-s6", vllm.convert(raw / "run3-S1-S6", "vllm-run3"))
    _write(out, "vllm-run4-s2-s3-s4", vllm.convert(raw / "run4-S2-S3-S4", "vllm-run4"))
    _write(out, "sglang-run1-a-b", sglang.convert(run1, "sglang-run1", EPOCH + 5187, EPOCH + 5412))
    _write(out, "sglang-run1-d", sglang.convert(run1, "sglang-run1", EPOCH + 5614, EPOCH + 5727))
    _write(out, "sglang-run2-c", sglang.convert(run2, "sglang-run2", EPOCH + 5901, EPOCH + 6068))
    _write(out, "sglang-run2-g2", sglang.convert(run2, "sglang-run2", EPOCH + 6081, EPOCH + 6248))


def _write(out: Path, name: str, frames: Iterable[AnyFrame]) -> None:
    path = out / f"{name}{SUFFIX}"
    path.unlink(missing_ok=True)
    recorder = Recorder(path, "-".join(name.split("-")[:2]))
    for frame in frames:
        recorder(frame)
    recorder.close()
    sys.stdout.write(f"{path.name}: {recorder.frames} frames, {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent)
