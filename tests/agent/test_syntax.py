from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.conftest import INTERPRETERS
from tests.agent.driver import ROOT

SOURCES = sorted((ROOT / "specdash" / "agent").glob("*.py"))
STANDARD = sys.stdlib_module_names | {"specdash", "pynvml", "_sha1"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_agent_is_written_in_python_3_6(source: Path) -> None:
    ast.parse(source.read_text(), feature_version=(3, 6))


def test_python_3_6_compiles_the_agent() -> None:
    python = INTERPRETERS.get("3.6")
    if python is None:
        pytest.skip("no Python 3.6 on this machine")
    code = "import sys\nfor path in sys.argv[1:]: compile(open(path, encoding='utf-8').read(), path, 'exec')"
    subprocess.run([python, "-c", code, *map(str, SOURCES)], check=True)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_agent_imports_the_standard_library_and_itself_only(source: Path) -> None:
    for node in ast.walk(ast.parse(source.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            assert node.level == 0
        for name in names:
            assert name.split(".")[0] in STANDARD, name
            assert not name.startswith("specdash.") or name.startswith("specdash.agent"), name
