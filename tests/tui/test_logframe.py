from __future__ import annotations

from specdash.monitor.serverparts import LogSource
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.logframe import no_log_rows, short_path


def test_a_file_that_is_only_called_log_is_named_with_its_folder() -> None:
    assert short_path("/var/log/server.log") == "server.log"
    assert short_path("/srv/main/log") == "main/log"
    assert short_path("log") == "log"


def test_the_name_of_an_empty_log_is_never_cut() -> None:
    path = "/tmp/a-folder-with-a-long-name/another-folder/server.log"
    rows = no_log_rows(LogSource(path=path, kind="file", says="", size=0), 30)
    assert max(map(width_of, rows)) <= 30
    assert path in "".join(text_of(line).strip() for line in rows)
