import pytest

from specdash.remote.errors import TargetError
from specdash.remote.target import parse_target


@pytest.mark.parametrize(
    ("text", "user", "host", "port"),
    [
        ("gpubox", None, "gpubox", None),
        ("root@gpubox", "root", "gpubox", None),
        ("root@gpubox:2222", "root", "gpubox", 2222),
        ("10.0.0.7:22", None, "10.0.0.7", 22),
        ("[fe80::1]:2222", None, "fe80::1", 2222),
        ("[fe80::1%eth0]", None, "fe80::1%eth0", None),
        ("fe80::1", None, "fe80::1", None),
        ("me@corp.example@bastion", "me@corp.example", "bastion", None),
        ("ssh://root@gpubox:22/", "root", "gpubox", 22),
        ("  gpubox ", None, "gpubox", None),
        ("local:22", None, "local", 22),
    ],
)
def test_a_target_is_read_as_people_write_it(
    text: str, user: str | None, host: str, port: int | None
) -> None:
    target = parse_target(text)
    assert (target.user, target.host, target.port, target.local) == (user, host, port, False)


def test_local_is_this_machine_without_ssh() -> None:
    assert parse_target("local").local


def test_a_name_that_is_too_long_is_refused_in_few_words() -> None:
    for text in ("x" * 5000, "u" * 300 + "@box"):
        with pytest.raises(TargetError) as caught:
            parse_target(text)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "   ",
            "root@",
            "@gpubox",
            ":22",
            "gpubox:",
            "gpubox:0",
            "gpubox:65536",
            "gpubox:ssh",
            "[fe80::1",
        ),
        *(
            "[fe80::1]22",
            "gpu box",
            "gpubox;reboot",
            "$(id)@gpubox",
            "gpubox/path",
            "-oProxyCommand=x",
            "a@-b",
        ),
        *("gpu\x1b[2Jbox", "gpubox:²"),
    ],
)
def test_what_cannot_be_a_host_is_refused_with_the_text_and_the_shapes(text: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(text)
    assert repr(text) in str(caught.value)
    assert "[user@]host[:port]" in str(caught.value)
