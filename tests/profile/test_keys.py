"""Which variable an API key goes by, and which command prints it."""

from __future__ import annotations

from specdash.profile.document import Host, Profile, Server
from specdash.profile.keys import key_commands, key_variable


def server(host: str, **more: object) -> Server:
    return Server(host=host, engine="sglang", command=("x",), **more)  # type: ignore[arg-type]


PROFILE = Profile(
    hosts={"a": Host(target="root@a"), "b": Host(target="root@b")},
    servers={
        "main": server("a", api_key_env="SGLANG_API_KEY"),
        "by-pass": server("a", api_key_command=("pass", "one")),
        "by_pass": server("a", api_key_command=("pass", "two")),
        "open": server("a"),
        "other": server("b", api_key_command=("pass", "three")),
    },
)


def test_a_variable_of_the_host_goes_by_its_own_name_and_a_command_by_one_of_ours() -> None:
    assert key_variable(PROFILE, "main") == "SGLANG_API_KEY"
    assert key_variable(PROFILE, "open") is None
    ours = key_variable(PROFILE, "by-pass")
    assert ours is not None
    assert ours.isidentifier(), "the load generator finds the key in a variable of this name"


def test_each_host_has_the_commands_of_its_own_servers_and_names_that_look_alike_stay_apart() -> None:
    known = key_commands(PROFILE, "a")
    assert sorted(known.values()) == [("by-pass", ("pass", "one")), ("by_pass", ("pass", "two"))]
    assert key_commands(PROFILE, "b").keys() == {key_variable(PROFILE, "other")}
    assert key_commands(PROFILE, None) == {}
