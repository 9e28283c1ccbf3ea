"""What a host is called, the same everywhere."""

from __future__ import annotations

import pytest

from specdash.monitor.naming import called, host_in_full, in_full
from tests.tui import states


@pytest.mark.parametrize(
    ("target", "own", "says"),
    [
        ("root@gpubox", "gpubox", "gpubox"),
        ("gpubox.example.com:2222", "GPUbox", "gpubox.example.com:2222"),
        ("ssh://root@gpubox", "gpubox.lan", "gpubox"),
        ("local", "vm", "local (vm)"),
        ("10.0.0.5", "gpu-17", "10.0.0.5 (gpu-17)"),
        ("gpubox", None, "gpubox"),
        ("gpubox", "", "gpubox"),
    ],
)
def test_a_host_goes_by_what_was_typed_and_by_its_own_name_where_that_is_another(
    target: str, own: str | None, says: str
) -> None:
    assert in_full(target, own) == says
    assert called(target) == says.partition(" (")[0]


def test_a_host_that_has_not_answered_has_one_name() -> None:
    assert host_in_full(states.connecting()) == called(states.connecting().target)
