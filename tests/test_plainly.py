"""A mistake in a TOML file, in the words of somebody who writes one."""

from __future__ import annotations

import msgspec
import pytest
import tomli

from specdash import plainly


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a = 1\nb = root@x\n", 2, "no value that TOML knows: text stands in quotes"),
        ("a = True\n", 1, "no value that TOML knows: text stands in quotes, true and false in lower case"),
        ("a = 1 2\n", 1, "too much behind the value: text stands in quotes"),
        ('a = "x\nb = 1\n', 1, "the closing quote of a text is missing"),
        ("a = 'x", 1, "the closing quote of a text is missing"),
        ('a = "\\q"\n', 1, "a \\ in a text: write \\\\, or put the text in ' instead of \""),
        ("a = 1\na = 2", 2, "this stands there twice: keep one"),
        ('["a b".c]\n["a b".c]\n', 2, "[a b.c] stands there twice: keep one"),
        ("a = { b = 1, b = 2 }\n", 1, "stands there twice: keep one"),
        ("just words\n", 1, "not TOML: Expected '=' after a key"),
        ("= 1\n", 1, "write [TABLE] or KEY = VALUE"),
    ],
)
def test_what_is_no_toml_is_told_by_its_line_and_what_to_write(text: str, line: int, says: str) -> None:
    with pytest.raises(tomli.TOMLDecodeError) as error:
        tomli.loads(text)
    found, words = plainly.syntax(str(error.value), text)
    assert found == line
    assert says in words


@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        (5, str, "a whole number where text in quotes is expected"),
        ("5", int, "text where a whole number without quotes is expected"),
        (0.5, int | None, "a number where a whole number is expected"),
        ("yes", bool, "text where true or false without quotes is expected"),
        ("x", list[str], "text where a list in [ ] is expected"),
        ([], dict[str, str], "a list where a table in { } is expected"),
    ],
)
def test_a_wrong_type_is_told_without_a_word_of_python(value: object, kind: type, says: str) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert(value, kind)
    assert plainly.types(str(error.value)) == says
