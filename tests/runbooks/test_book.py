"""The runbooks there are: the profile's, and ours; what they do and whether they can be run."""

from __future__ import annotations

import pytest

from specdash.profile.document import Profile, Variant
from specdash.profile.document import Server as ProfileServer
from specdash.profile.loading import parse
from specdash.runbooks.book import Book, NoBook, benchmarks, books, find, seconds, title_of

VARIANTS = Profile(
    servers={
        "main": ProfileServer(host="gpubox", engine="sglang", command=("x",)),
        "other": ProfileServer(host="dgx2", engine="sglang", command=("x",)),
    },
    variants={"fast": Variant(server="main"), "wide": Variant(server="main"), "far": Variant(server="other")},
)


def _did(book: Book) -> list[str]:
    return [f"{step.do or step.bench} {step.variant or '-'}" for step in book.steps if step.wait is None]


def test_three_come_with_specdash_and_one_of_the_profile_takes_the_place_of_ours() -> None:
    assert list(books(Profile())) == ["restart-and-verify", "night-watch", "compare-variants"]
    mine = parse('[runbooks.night-watch]\nsteps = [{ notify = "mine" }]\n')
    assert [step.notify for step in find(mine, "night-watch").steps] == ["mine"]
    assert not find(mine, "night-watch").ours


def test_the_night_watch_changes_nothing_and_the_others_do() -> None:
    assert [book.acts for book in books(VARIANTS).values()] == [True, False, True]


def test_variants_are_compared_there_and_back_again_on_their_own_host_only() -> None:
    book = find(VARIANTS, "compare-variants", "gpubox")
    assert _did(book) == [
        *("restart -", "short -", "restart fast", "short -", "restart wide", "short -"),
        *("restart wide", "short -", "restart fast", "short -", "restart -", "short -"),
    ]
    assert title_of(book.steps[3]) == "restart the server — fast"
    with pytest.raises(NoBook, match=r"cannot be run: the profile has no variant of a server there"):
        find(Profile(), "compare-variants")


def test_a_benchmark_of_the_profile_takes_the_place_of_ours() -> None:
    assert benchmarks(Profile())["short"].repeat == 3
    mine = parse("[benchmarks.short]\nconcurrency = [8]\n")
    assert benchmarks(mine)["short"].concurrency == (8,)


def test_a_name_that_is_mistyped_finds_the_nearest() -> None:
    with pytest.raises(NoBook) as error:
        find(Profile(), "nightwatch")
    assert error.value.hint == "did you mean night-watch?"
    assert error.value.exit_code == 2


@pytest.mark.parametrize(("text", "of"), [("90s", 90.0), ("1.5 m", 90.0), ("2h", 7200.0)])
def test_deadlines_are_read(text: str, of: float) -> None:
    assert seconds(text) == of
