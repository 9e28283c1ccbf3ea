from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdash.sanitise import REDACTED, clean_line, redact, sanitise

HF = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWx"
SK = "sk-" + "proj-0123456789abcdef"


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("plain", "plain"),
        ("\x1b[0;36m(EngineCore pid=412)\x1b[0;0m \x1b[32mINFO\x1b[0m", "(EngineCore pid=412) INFO"),
        ("a\x1b]0;new title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x1bPq#0;2;0;0;0\x1b\\b", "ab"),
        ("a\x1b_Gf=100;AAAA\x1b\\b", "ab"),
        ("a\x1b^private\x1b\\b", "ab"),
        ("a\x9b31mred\x9b0m", "ared"),
        ("cut off \x1b[38;5", "cut off "),
        ("cut off \x1b]0;title", "cut off "),
        ("save\x1b7 and restore\x1b8", "save and restore"),
        ("a\x1b(Bb", "ab"),
        ("tab\there", "tab    here"),
        ("bell\x07 back\x08space \x7f nul\x00", "bell backspace  nul"),
        ("right\u202eto left\u202c", "rightto left"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("one\u2028two", "onetwo"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("Grüße, 世界, 43%|████▎     |", "Grüße, 世界, 43%|████▎     |"),
    ],
)
def test_a_terminal_has_nothing_left_to_obey(dirty: str, clean: str) -> None:
    assert sanitise(dirty) == clean


def test_bytes_that_are_no_utf8_are_marked() -> None:
    assert sanitise(b"caf\xe9 \xe2\x96") == "caf\ufffd \ufffd"


def test_markup_is_left_as_text() -> None:
    assert sanitise("[red]not[/red]") == "[red]not[/red]"


@given(st.one_of(st.text(st.characters()), st.binary()))
def test_whatever_comes_in_nothing_that_controls_comes_out(text: str | bytes) -> None:
    out = clean_line(text)
    assert not [c for c in out if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}]
    assert not set(out) & set(
        "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
    )
    assert sanitise(out) == out


@pytest.mark.parametrize(
    "text",
    [
        "server_args=ServerArgs(port=30000, api_key='SECRET', admin_api_key='SECRET')",
        "server_args={'port': 30000, 'api_key': 'SECRET', 'tp_size': 8}",
        "non-default args: {'api_key': ['SECRET', 'SECRET'], 'port': 8000}",
        '{"api_key": "SECRET"}',
        '{\\"api_key\\": \\"SECRET\\"}',
        "python -m sglang.launch_server --api-key SECRET --port 30000",
        "vllm serve m --api-key=SECRET",
        "['vllm', 'serve', '--api-key', 'SECRET', '--port', '8000']",
        '["--admin-api-key", "SECRET"]',
        "--hf-token SECRET",
        "HF_TOKEN=SECRET HUGGING_FACE_HUB_TOKEN=SECRET VLLM_API_KEY=SECRET",
        "AWS_SECRET_ACCESS_KEY=SECRET",
        "export OPENAI_API_KEY='SECRET'",
        "password: SECRET",
        "db_password=SECRET&user=me",
        "ssl_keyfile_password='SECRET'",
        "Authorization: Bearer SECRET",
        "{'Authorization': 'Bearer SECRETSECRET'}",
        "header Bearer SECRETSECRET sent",
        "proxy http://me:SECRET@proxy:3128/",
        "client_secret=SECRET",
        "token=SECRET",
        "'token': 'SECRET'",
        "_token=SECRET",
        "token:SECRET, token = SECRET; token=9SECRET",
        "PGPASSWORD=SECRET clientSecret=SECRET accessToken=SECRET authToken: SECRET apiKey=SECRET",
        "AZURE_OPENAI_KEY=SECRET DB_PWD=SECRET",
        "my.api.key=SECRET",
        "Invalid API key: SECRET",
        "vllm serve m --api-key SECRET1a2b3c SECRET9z8y7x --port 1",
        "['--api-key', 'SECRET', 'SECRET1a2b3c', '--port', '1']",
        "--credentials SECRET --secret-key SECRET --basic-auth me:SECRET --api-keys SECRET",
        "api_key=SecretStr('SECRET')",
        "api_key=b'SECRET'",
        "api_key=('SECRET', 'SECRET')",
        "api_keys=['SECRET']",
        "api_key={'a': 'SECRET'}",
        "https://SECRETSECRET@github.com/x",
        "redis://:SECRET@cache:6379",
        'GET "/v1/models?key=SECRET&x=1"',
        "https://x/?sig=SECRET&se=2",
        "Cookie: session=SECRET",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxSECRET.abc",
    ],
)
def test_secrets_do_not_pass(text: str) -> None:
    out = redact(text)
    assert "SECRET" not in out.replace("AWS_SECRET_ACCESS_KEY", "")
    assert REDACTED in out


@pytest.mark.parametrize("token", [HF, SK, "ghp_" + "a1" * 18, "AKIA" + "ABCDEFGH12345678"])
def test_tokens_are_known_by_their_look(token: str) -> None:
    assert redact(f"error for {token}, retry") == f"error for {REDACTED}, retry"


def test_what_stands_around_a_secret_stays() -> None:
    assert redact("a --api-key s3cr3t --port 1") == f"a --api-key {REDACTED} --port 1"
    assert redact("port=30000, api_key='x, y', tp_size=8") == f"port=30000, api_key={REDACTED}, tp_size=8"


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=512, num_tokens=8192, max_total_num_tokens=512000",
        "--tokenizer /models/x --tokenizer-mode auto --max-num-batched-tokens 8192",
        "tokenizer_path='/models/target', skip_tokenizer_init=False",
        "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00",
        "Decode batch, #running-req: 1, #token: 1040, token usage: 0.01, gen throughput (token/s): 82.40",
        "Capturing num tokens (num_tokens=8192 avail_mem=81.36 GB)",
        "api_key=None, admin_api_key=None, 'token': None, password=''",
        "eos_token='</s>', bos_token: '<s>', pad_token=0, image_token='[IMG]'",
        "ssl_keyfile=None, enable_prefix_keys=True",
        'INFO:     127.0.0.1:33958 - "GET /health HTTP/1.1" 200 OK',
        "task-queue disk-usage mask-rate risk-averse-long-name",
        "monkey=banana keyboard: qwerty",
        "http://127.0.0.1:30000/v1/models",
        "authorization is off",
        "error: argument --tokenizer: expected one argument",
        "api_keys=[], credentials=None, secrets={}",
        "GET /v1/completions?stream=1 and ssh://root@gpubox:22",
        "the tokenizer class you load from this checkpoint",
    ],
)
def test_harmless_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_one_door_does_both() -> None:
    assert clean_line(b"\x1b[31mapi_key='abc'\x1b[0m\t!") == f"api_key={REDACTED}    !"


@pytest.mark.parametrize(
    "unit",
    ["-a", "a-", "x-key-", "-", "a://b:", "token=[ ", "eyJ-", "--api-key ", "api_key=(", '"', "\x1b]", " "],
)
def test_no_line_costs_more_than_its_length(unit: str) -> None:
    line = ("key " + unit * (1 << 16))[: 1 << 16]
    began = time.process_time()
    clean_line(line)
    assert time.process_time() - began < 3.0, "the square of 64 KiB takes much longer than this"


def test_an_escape_cannot_hide_a_secret() -> None:
    assert "abc" not in clean_line("api\x1b[0m_key='abc'")
