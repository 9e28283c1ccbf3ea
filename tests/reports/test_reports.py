"""What is pasted into a ticket: true to what was kept, whole, escaped, and without a secret."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from specdash.commands.report import command
from specdash.errors import SpecdashError
from specdash.history.todo import Todo
from specdash.operations.journal import Journal
from specdash.operations.plan import Plan
from specdash.operations.plan import Step as PlanStep
from specdash.operations.work import Launch, Start, Write
from specdash.profile.document import FilePatch, RunbookStep
from specdash.reports.charts import chart
from specdash.reports.gather import gather
from specdash.reports.markdown import fenced, markdown, plain
from specdash.reports.model import Diff, Report, clean, stretches
from specdash.reports.page import page
from specdash.runbooks.runs import Runs
from specdash.runbooks.samples import Sample, ServerSample
from specdash.runbooks.steps import Seen, Step
from tests.bench.test_table import measured
from tests.runbooks.scene import Anna, Room
from tests.tui.actors import DRAFT, serving

RECORDING = Path(__file__).parent.parent / "recordings" / "sglang-run1-d.specdash.gz"
NASTY = "<script>alert(1)</script> & `x` | **b** \x1b[31m"
T0 = 1_795_960_000.0


class Page(HTMLParser):
    """Collects tags and what a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "style")]

    def handle_data(self, data: str) -> None:
        self.words += data


def _sample(at: float, *used: int | None, **servers: str) -> Sample:
    return Sample(
        at=T0 + at,
        used_mib=used,
        total_mib=tuple(96 * 1024 for _ in used),
        servers=tuple(
            ServerSample(name=name, pid=7, state=words.split("/")[0], phase=words.partition("/")[2] or None)
            for name, words in servers.items()
        ),
    )


def _report(**more: object) -> Report:
    steps = (
        Step(
            title="kill", state="done", source="runbook", started=T0, ended=T0 + 8,
            evidence=(Seen(text="9 processes ended", at=T0 + 8), Seen(text="tried again", at=T0 + 3)),
        ),
        Step(title="start", state="failed", source="runbook", started=T0 + 8, ended=T0 + 20),
    )  # fmt: skip
    samples = (
        _sample(0, 77824, 77824, sglang="stalled/capture"),
        _sample(6, 0, 77824),
        _sample(12, 0, None, sglang="loading/weights"),
        _sample(20, 40000, 0, sglang="ready/serving"),
    )
    given = {
        "id": "runbook-1", "title": "runbook night", "target": "box", "outcome": "failed", "began": T0,
        "ended": T0 + 20, "steps": steps, "samples": samples, "version": "1",
    }  # fmt: skip
    return Report(**{**given, **more})  # type: ignore[arg-type]


async def test_a_run_is_reported_with_its_plans_diffs_and_what_was_literally_sent(tmp_path: Path) -> None:
    host = serving()
    host.managers["ls /tmp"] = lambda _: 0
    room = Room(host, tmp_path, Anna())
    run = await room.carry(
        room.new(
            RunbookStep(do="kill"),
            RunbookStep(run=("ls", "/tmp")),
            RunbookStep(patch=FilePatch(file=DRAFT, set={"max_position_embeddings": 524288})),
            RunbookStep(do="launch"),
            RunbookStep(notify="over"),
        )
    )
    journal = Journal(tmp_path / "operations")
    for wanted in (None, run.id, run.id[:10], run.steps[0].plan):
        report = gather(wanted, journal, room.runs, ())
        assert report.outcome == "done"
    began = run.steps[0].started or 0.0
    todos = [
        Todo(id="a", title="told the team", place=1.0, made=began - 50, state="done", ended=began + 1),
        Todo(id="b", title="long ago", place=2.0, made=began - 90, state="done", ended=began - 80),
    ]
    report = gather(run.id, journal, room.runs, (), lambda target: todos)
    text = markdown(report)
    assert "6 told the team" in text
    assert "ticked by hand" in text
    assert "long ago" not in text
    assert "# runbook night on gpubox (box)" in text
    for words in (
        "| ✓ | 1 stop the server |",
        "| ✓ | 1.1 ",
        "exit status 0",
        "GPU 0, 1 clean",
        "SIGTERM 100",
        '-  "max_position_embeddings": 262144',
        '+  "max_position_embeddings": 524288',
        "python3 -m sglang.launch_server --model-path /models/target",
        "a token came back",
    ):
        assert words in text, f"{words}\n{text}"
    told = Page(page(report)).words
    for words in ("stop the server", "SIGTERM 100", "524288", "a token came back"):
        assert words in told


def test_the_page_runs_nothing_loads_nothing_and_shows_hostile_text_as_text() -> None:
    step = Step(title=NASTY, state="done", source="todo", started=T0, ended=T0 + 9, note=NASTY,
                evidence=(Seen(text=NASTY, at=T0),))  # fmt: skip
    nasty = _report(
        title=NASTY, target=NASTY, steps=(step,), literal=((NASTY, (NASTY,)),), notes=(NASTY,),
        diffs=(Diff(title=NASTY, lines=(f"+{NASTY}",)),),
        samples=(_sample(0, 1, **{NASTY: "ready/<b>"}), _sample(9, 2, **{NASTY: "loading/<b>"})),
    )  # fmt: skip
    text = page(clean(nasty))
    found = Page(text)
    assert not set(found.tags) & {"script", "img", "iframe", "link", "object", "b", "a"}
    assert found.links == []
    assert "default-src &#x27;none&#x27;" in text
    assert "\x1b" not in text
    assert found.words.count("<script>alert(1)</script>") >= 6
    in_markdown = markdown(clean(nasty))
    assert "<script>" not in re.sub(r"```.*?```", "", in_markdown, flags=re.DOTALL).replace("\\<", "")


def test_a_secret_that_came_past_every_door_is_in_no_report() -> None:
    secret = "HF_TOKEN=hf_abcdefghijklmnopqrstuvwx"
    report = clean(
        _report(
            steps=(Step(title=secret, state="done", source="todo", evidence=(Seen(text=secret),)),),
            literal=(("start", (secret,)),), diffs=(Diff(title="x", lines=(f"+ {secret}",)),),
        )
    )  # fmt: skip
    for text in (page(report), markdown(report)):
        assert "hf_abcdef" not in text
        assert "redacted" in text


def test_a_report_of_a_simulated_host_says_so_first() -> None:
    told = "SIMULATED: this is no real host, and its figures are made up"
    for written in (markdown, page):
        assert told not in written(_report())
        text = written(_report(simulated=True))
        assert text.index("runbook night on box") < text.index(told) < text.index("What was done")


def test_whether_a_host_was_simulated_is_kept_with_what_was_done(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(_started("launch-1", T0, "a"), simulated=True)
    journal = Journal(tmp_path / "operations")
    journal.begin(plan).close()
    assert gather("launch-1", journal, Runs(tmp_path / "runs"), ()).simulated
    made_up = measured(1, 80.0, fingerprint={"simulated": "yes"})
    assert gather("1", journal, Runs(tmp_path / "runs"), (made_up,)).simulated
    assert not gather("2", journal, Runs(tmp_path / "runs"), (measured(2, 80.0),)).simulated


def test_the_timeline_says_how_long_each_server_was_in_which_state() -> None:
    found = [(one.words, one.begin - T0, one.end - T0) for one in stretches(_report().samples)]
    assert found == [("stalled in capture", 0, 6), ("loading in weights", 12, 20), ("ready", 20, 20)]


def test_the_chart_has_a_row_for_each_card_and_a_gap_where_it_was_not_read() -> None:
    drawn = chart(_report())
    assert [words in drawn for words in ("GPU 0", "GPU 1", "stalled in capture", "39.1 GiB")] == [True] * 4
    shapes = re.findall(r'class="memory"', drawn)
    assert len(shapes) == 3  # GPU 1 was not read for a while: two pieces, and no zero between them
    assert chart(_report(samples=(), steps=(), began=None, ended=None)) == ""
    assert "NaN" not in drawn


def test_steps_keep_their_moments_and_earlier_words_their_own() -> None:
    text = markdown(_report())
    rows = [line for line in text.splitlines() if line.startswith("| ✓")]
    assert re.search(
        r"\| ✓ \| 1 kill \| \d\d:\d\d:\d\d \| 8 s \| 9 processes ended<br>\d\d:\d\d:\d\d tried", rows[0]
    )


def test_markdown_of_strangers_stays_text_and_no_line_ends_a_fence() -> None:
    assert plain("a|b <i> `c` *d*") == "a\\|b \\<i\\> \\`c\\` \\*d\\*"
    block = list(fenced(("```", "````x")))
    assert block[0] == block[-1] == "`````"


def _started(plan_id: str, made: float, *argv: str) -> Plan:
    write = Write(path="/x", edits=(), expect="", becomes="")
    launch = Launch(name="main", engine="sglang", argv=argv, env={"NCCL_ALGO": argv[-1]})
    steps = (
        PlanStep(title="start main", risk="hard", work=Start(launch=launch), state="done", started=made),
        PlanStep(title="write", risk="hard", work=write, state="skipped", preview=("+ never",)),
    )
    return Plan(
        id=plan_id, kind="launch", subject="main", target="box", host="box", boot="b", steps=steps, made=made
    )


def test_what_differs_from_the_start_before_is_said_flag_by_flag(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    room = Room(serving(), tmp_path)
    for plan in (
        _started("launch-old", T0, "python3", "--tp", "8", "--steps", "2"),
        _started("launch-new", T0 + 60, "python3", "--tp", "8", "--steps", "3", "--graphs"),
    ):
        record = journal.begin(plan)
        record.end()
        record.close()
    report = gather("launch-new", journal, room.runs, ())
    assert report.diffs[0].lines == (
        "- --steps 2", "+ --steps 3", "+ --graphs", "- NCCL_ALGO=2", "+ NCCL_ALGO=--graphs",
    )  # fmt: skip
    assert len(report.diffs) == 1  # a file that was not written is no change
    assert gather("launch-old", journal, room.runs, ()).diffs == ()
    with pytest.raises(SpecdashError, match="2 things are called launch"):
        gather("launch", journal, room.runs, ())
    with pytest.raises(SpecdashError, match="nothing is called kill-9"):
        gather("kill-9", journal, room.runs, ())


def test_a_recording_becomes_a_report_of_what_was_seen(tmp_path: Path) -> None:
    out = tmp_path / "night.html"
    told = CliRunner().invoke(command, [str(RECORDING), "--html", "--output", str(out)])
    assert told.exit_code == 0, told.output
    assert out.stat().st_mode & 0o777 == 0o600
    text = out.read_text()
    assert 'class="memory"' in text
    assert "sglang" in Page(text).words
    in_markdown = CliRunner().invoke(command, [str(RECORDING)])
    assert in_markdown.exit_code == 0
    assert "## Timeline" in in_markdown.output
    assert "## GPU memory" in in_markdown.output


def test_where_nothing_was_done_it_says_so(tmp_path: Path) -> None:
    room = Room(serving(), tmp_path)
    with pytest.raises(SpecdashError, match="nothing was changed on a host and nothing measured yet"):
        gather(None, Journal(tmp_path / "none"), room.runs, ())
    with pytest.raises(SpecdashError, match="there is no run 7"):
        gather("7", Journal(tmp_path / "none"), room.runs, ())


def test_where_only_benchmarks_were_made_the_newest_is_told_of(tmp_path: Path) -> None:
    nothing = Journal(tmp_path / "none")
    kept = (measured(1, 80.0), measured(2, 81.0))
    newest = max(kept, key=lambda run: run.at)
    assert gather(None, nothing, Runs(tmp_path / "runs"), kept).title.startswith(f"benchmark {newest.id},")
    nothing.begin(_started("launch-1", T0, "a")).close()
    assert gather(None, nothing, Runs(tmp_path / "runs"), kept).id == "launch-1"


def test_a_folder_is_no_recording_and_called_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SpecdashError, match="a folder, and a plain file is wanted"):
        gather(str(tmp_path), Journal(tmp_path / "none"), Runs(tmp_path / "runs"), ())
