"""What is sent to the host, run by each Python found here, as the host would run it."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from specdash.remote import payload
from specdash.remote.bootstrap import Bootstrap
from specdash.remote.payload import agent_modules, pack, parcel, unpack
from tests.remote import standin

PYTHONS = sorted(
    {sys.executable, *map(str, Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python"))}
    | ({"/usr/bin/python3"} if shutil.which("/usr/bin/python3") else set())
)


def run_on_host(
    python: str, block: bytes, options: dict[str, object], requests: bytes = b""
) -> tuple[str, str]:
    """Feed a parcel to the loader, as sshd would; gives stdout and stderr."""
    done = subprocess.run(
        [python, "-u", "-I", "-c", Bootstrap().loader],
        input=parcel(block, options) + requests,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.stdout.decode(), done.stderr.decode()


def agent(source: str, **modules: str) -> bytes:
    return pack({"specdash": "", "specdash.agent": "", "specdash.agent.main": source, **modules})


def test_the_whole_agent_and_nvmls_binding_are_sent_and_nothing_else() -> None:
    modules = agent_modules()
    assert "specdash.agent" in modules
    assert "nvmlDeviceGetMemoryInfo" in modules["pynvml"]
    assert {name.partition(".")[0] for name in modules} == {"specdash", "pynvml"}
    assert all(
        name == "specdash" or name.startswith("specdash.agent") for name in modules if name != "pynvml"
    )


def test_the_block_is_small_is_built_once_and_can_be_taken_apart() -> None:
    assert len(payload.payload()) < 170_000  # a fifth of it is the load generator
    assert payload.payload() is payload.payload()
    assert unpack(payload.payload()) == dict(agent_modules())


def test_the_loader_keeps_to_syntax_that_python_3_6_reads() -> None:
    text = Path(payload.__file__).with_name("loader.py").read_text()
    tree = ast.parse(text, feature_version=(3, 6))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.NamedExpr)]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_agent_starts_in_memory_with_its_options(python: str) -> None:
    source = """
import os, sys
def main(frames_in, frames_out, options):
    import pynvml, specdash.agent.part
    words = [options["watch"], specdash.agent.part.WORD, pynvml.WHO, os.read(frames_in, 5), sys.stdin.read()]
    os.write(frames_out, repr(words).encode())
"""
    block = agent(source, **{"specdash.agent.part": "WORD = 'ö'", "pynvml": "WHO = 'made up'"})
    out, err = run_on_host(python, block, {"watch": True}, b"hello")
    assert (out, err) == ("[True, 'ö', 'made up', b'hello', '']", "")


@pytest.mark.parametrize("python", PYTHONS)
def test_a_traceback_shows_file_line_and_source(python: str) -> None:
    source = "def main(*args):\n    from specdash.agent import part\n    part.fall()\n"
    block = agent(source, **{"specdash.agent.part": "def fall():\n    return 1 / 0  # a telling line\n"})
    out, err = run_on_host(python, block, {})
    assert out == ""
    assert 'File "<sent>/specdash/agent/part.py", line 2, in fall' in err
    assert "return 1 / 0  # a telling line" in err
    assert "part.fall()" in err


@pytest.mark.parametrize("python", PYTHONS)
def test_the_sent_binding_can_be_imported_there(python: str) -> None:
    source = """
import os
def main(frames_in, frames_out, options):
    import pynvml
    os.write(frames_out, pynvml.NVMLError.__name__.encode())
"""
    out, err = run_on_host(python, agent(source, pynvml=agent_modules()["pynvml"]), {})
    assert (out, err) == ("NVMLError", "")


def test_stray_prints_and_children_cannot_touch_the_frames() -> None:
    source = """
import os
def main(frames_in, frames_out, options):
    print("stray"); os.system("echo child; cat"); os.write(frames_out, os.read(frames_in, 9))
"""
    out, err = run_on_host(sys.executable, agent(source), {}, b"untouched")
    assert out == "untouched"
    assert "stray" in err
    assert "child" in err


def test_a_traceback_does_not_break_a_frame_where_a_start_up_file_said_2_to_1() -> None:
    command = ["/bin/sh", "-c", 'exec "$@" 2>&1', "-", sys.executable, "-I", "-c", Bootstrap().loader]
    source = "import os, sys\ndef main(i, o, options):\n    os.write(o, b'frame'); sys.exit('broken')\n"
    done = subprocess.run(
        command, input=parcel(agent(source), {}), capture_output=True, timeout=60, check=False
    )
    assert done.stdout == b"frame"


def test_a_parcel_that_ends_early_ends_the_loader_quietly() -> None:
    whole = parcel(standin.block(), {})
    for size in (0, 5, 20, len(whole) - 1):
        command = [sys.executable, "-I", "-c", Bootstrap().loader]
        done = subprocess.run(command, input=whole[:size], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (3, b"", b"")
