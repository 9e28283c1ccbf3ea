from __future__ import annotations

import json
from collections import Counter

import pytest
from click.testing import CliRunner

from specdash.commands.keys import command as keys_command
from specdash.tui.actions import ACTIONS, BY_ID, allowed, shown
from specdash.tui.paint import text_of, width_of
from specdash.tui.screens.handlers import HANDLERS
from specdash.tui.screens.help import help_rows
from specdash.tui.widgets.footer import Moment, footer_row

# The contract's table of keys: what each label must do, by scope and risk.
CONTRACT = {
    "read": "j k h l g G ctrl+d ctrl+u PgUp PgDn tab 0 1 2 3 4 5 z esc / & p n N e E [ ] s f w t m y ctrl+s "
    "space enter x X o r v d a i < > D : ? q",
    "soft": "T B",
    "hard": "K C R P U",
}


def test_the_table_has_every_key_of_the_contract_with_its_risk_and_no_other() -> None:
    told = {risk: set(keys.split()) for risk, keys in CONTRACT.items()}
    have: dict[str, set[str]] = {"read": set(), "soft": set(), "hard": set()}
    for action in ACTIONS:
        have[action.risk].add(action.label.split()[0])
    assert have == told


def test_no_two_actions_share_a_key_in_one_scope() -> None:
    for scope in ("dashboard", "log", "steps", "compare"):
        keys = Counter(
            key for action in ACTIONS if action.scope in ("any", "log", scope) for key in action.keys
        )
        doubled = {key for key, many in keys.items() if many > 1}
        assert doubled <= ({"d"} if scope == "compare" else set()), scope


def test_capitals_act_and_lower_case_looks_but_for_moving_in_the_log_and_the_list() -> None:
    for action in ACTIONS:
        if action.risk != "read":
            assert action.label.isupper(), action
            assert len(action.label) == 1, action


def test_what_is_built_has_a_handler_and_what_is_not_has_none() -> None:
    assert set(HANDLERS) == {action.id for action in ACTIONS if action.available}


def test_under_watch_nothing_that_acts_exists_even_when_it_is_built() -> None:
    from dataclasses import replace

    for id_ in ("server.kill", "gpu.clean", "server.token", "bench.run"):
        built = replace(BY_ID[id_], available=True)
        assert allowed(built, watch_only=False)
        assert not allowed(built, watch_only=True)


def test_help_names_every_key_that_works_and_none_that_does_not() -> None:
    for width in (78, 116):
        text = "\n".join(text_of(row) for row in help_rows(width))
        for action in ACTIONS:
            assert (action.help in text) == action.available, action.id


def test_the_footer_names_at_most_nine_keys_and_fits_its_width() -> None:
    for width in range(60, 220):
        for first in ((), ("alert.ack", "log.error", "log.gap"), ("conn.retry",)):
            text = text_of(footer_row(width, Moment(first=first)))
            assert len(text) <= width
            assert len(text.split("  ")) - text.split("  ").count("") <= 9
            for must in (": command", "? help", "q quit"):
                assert must in text
    assert "x acknowledge" in text_of(footer_row(60, Moment(first=("alert.ack",))))
    assert "/ find" not in text_of(footer_row(120, Moment(panes=False)))


def test_the_footer_offers_nothing_that_would_find_nothing() -> None:
    assert "e error" in text_of(footer_row(120))
    assert "e error" not in text_of(footer_row(120, Moment(idle=frozenset({"log.error"}))))
    assert "K kill" in text_of(footer_row(120, Moment(first=("server.kill",))))
    assert "K kill" not in text_of(footer_row(120, Moment(acts=False, first=("server.kill",))))
    assert "r reconnect" in text_of(footer_row(120, Moment(first=("conn.retry",), live=False)))


def test_footer_help_and_palette_never_name_what_is_not_built() -> None:
    later = [action for action in ACTIONS if not action.available]
    assert not set(later) & set(shown(watch_only=False))


def test_the_keys_command_lists_all_of_them() -> None:
    plain = CliRunner().invoke(keys_command, []).output
    assert "K        server.kill        stop the server by its ladder, verify its GPUs  [hard]\n" in plain
    assert "B        bench.run          benchmark; again: stop it  [soft]\n" in plain
    assert "d        bench.diff         the difference of two runs  (compare)\n" in plain
    assert "(later)" not in plain, "all of it is built"
    assert "/        log.find           search in the log" in plain
    document = json.loads(CliRunner().invoke(keys_command, ["--json"]).output)
    assert document["schema"] == 1
    assert [key["id"] for key in document["keys"]] == [action.id for action in ACTIONS]
    kill = next(key for key in document["keys"] if key["id"] == "server.kill")
    assert (kill["risk"], kill["available"], kill["label"]) == ("hard", True, "K")


@pytest.mark.parametrize("width", [56, 76, 100, 106, 116])
def test_no_help_is_cut_off_for_want_of_room(width: int) -> None:
    rows = help_rows(width)
    assert max(map(width_of, rows)) <= width
    assert "…" not in "".join(map(text_of, rows))
