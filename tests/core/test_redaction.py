"""Secrets are replaced wherever something is written, and ordinary words are not."""

from __future__ import annotations

import json
import random
import time

import pytest

from agentcompass.core.redaction import HIDDEN, Redactor, hide_leaves, is_secret_name, secrets_among

pytestmark = pytest.mark.seed("RR-07")
SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "name",
    """
    api_key apiKey apikey API_KEY ApiKey api-key x-api-key OPENAI_API_KEY openaiApiKey some.api.key
    aws_secret_access_key accessToken access_token auth_token token GITHUB_TOKEN HF_TOKEN
    bearer clientSecret client_secret secret secrets
    password passwd pwd db_password PASSPHRASE credential credentials cookie Set-Cookie set_cookie Authorization
    Proxy-Authorization jwt id_jwt AKSK aksk privateKey PRIVATE_KEY secretKey signing_key api_keys access_tokens
    session_token
    """.split(),
)
def test_names_of_credentials(name):
    """A name that ends in a word for credentials names one, however it is written."""
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    """
    completion_tokens prompt_tokens max_tokens maxTokens completion_token max_token stop_token next_token tokenizer
    token_count tokens n_tokens total_tokens cached_tokens sort_key sortKey primary_key foreign_key session_key
    answer_key partition_key key keys monkey keyboard author authored secretary passwordless_login
    reset_password_url token_type
    api_key_name description task_id metrics id _ __ 键 bearing cookiecutter jwtless
    """.split(),
)
def test_names_of_ordinary_things(name):
    """Words that only look like credentials name none."""
    assert not is_secret_name(name)


def test_an_empty_name_is_no_credential():
    """Nothing is no name."""
    assert not is_secret_name("")


def test_documents_lose_the_values_under_telling_names():
    """Texts, lists and mappings under such a name are hidden whole; nulls, empties, numbers and flags tell nothing."""
    document = {
        "api_key": "short",
        "nested": [{"password": ["a", {"b": "c"}], "clientSecret": {"v": "x"}}],
        "token": None,
        "secret": "",
        "cookie": {},
        "wrap_api_key": True,
        "access_token": 7,
        "max_tokens": 100,
        "completion_tokens": 5,
        "sort_key": "name",
    }

    assert {
        "api_key": HIDDEN,
        "nested": [{"password": HIDDEN, "clientSecret": HIDDEN}],
        "token": None,
        "secret": "",
        "cookie": {},
        "wrap_api_key": True,
        "access_token": 7,
        "max_tokens": 100,
        "completion_tokens": 5,
        "sort_key": "name",
    } == Redactor().document(document)


@pytest.mark.parametrize(
    "name", ["headers", "extra_headers", "env", "env_variables", "run_env_variables", "credentials", "auth"]
)
def test_containers_keep_only_their_keys(name):
    """Whatever is in an environment or among headers may be a secret; which keys there are is told."""
    document = {name: {"X-Org": "acme", "depth": {"inner": [b"raw", "", None, 3, True, {1}]}}}

    assert {name: {"X-Org": HIDDEN, "depth": {"inner": [HIDDEN, "", None, 3, True, HIDDEN]}}} == Redactor().document(
        document
    )


def test_a_container_name_over_a_text():
    """A text is no container, and under a telling name it is hidden."""
    assert {"env": "docker", "credentials": HIDDEN} == Redactor().document({"env": "docker", "credentials": "abc"})


@pytest.mark.parametrize("table", ["resolved_execution_plans", "active_tasks", "categories", "hierarchy", "children"])
def test_names_of_tasks_are_no_names_of_fields(table):
    """A task or category with a telling name keeps its entry; inside the entry, names tell again."""
    document = {table: {"reset-password": {"phase": "plan", "api_key": "x"}, "api_key": "loose"}}

    assert {table: {"reset-password": {"phase": "plan", "api_key": HIDDEN}, "api_key": HIDDEN}} == Redactor().document(
        document
    )


@pytest.mark.parametrize(
    "secret", [SECRET, 'quo"ted\\sec\nret', "geheim-ключ-密钥", "$(regex).*[chars]", "with spaces in it"]
)
def test_known_values_are_hidden_wherever_they_stand(secret):
    """A known secret is found in free text, in text that is JSON itself, as a key, and at any depth."""
    redactor = Redactor([secret])
    embedded = [json.dumps({"a": secret}), json.dumps({"a": secret}, ensure_ascii=False)]
    document = {"log": f"before {secret} after", "embedded": embedded, f"of {secret}": [[{"deep": secret}]]}
    found = redactor.document(document)

    assert f"before {HIDDEN} after" == found["log"]
    assert [{"a": HIDDEN}] * 2 == [json.loads(text) for text in found["embedded"]]
    assert [[{"deep": HIDDEN}]] == found[f"of {HIDDEN}"]


def test_the_longest_secret_is_hidden_first():
    """A secret that contains another leaves no part of itself."""
    assert f"({HIDDEN})" == Redactor(["abcdefgh", "abcdefgh-ijklmnop"]).text("(abcdefgh-ijklmnop)")


def test_white_space_around_a_secret_is_none_of_it():
    """A key read from a file with a line end is found where it is used without it."""
    assert HIDDEN == Redactor([f" {SECRET}\n"]).text(SECRET)


def test_short_values_are_not_hunted():
    """What is shorter than eight characters would hide ordinary words."""
    redactor = Redactor(["1234567", "", "        "])

    assert "1234567 is no secret" == redactor.text("1234567 is no secret")


def test_secrets_can_be_learned_later():
    """What was written as a key before is found as one afterwards."""
    redactor = Redactor()
    before = redactor.document({SECRET: 1})
    redactor.learn([SECRET])

    assert ({SECRET: 1}, {HIDDEN: 1}) == (before, redactor.document({SECRET: 1}))


FORMATS = {
    "openai": "sk-proj-abcDEF123456_7890-xyz",
    "anthropic": "sk-ant-api03-abcdefgh1234",
    "github": "ghp_abcdefghij0123456789ABCD",
    "github fine": "github_pat_11ABCDEFG0abcdefghij_xyz",
    "gitlab": "glpat-abcdefghij0123456789",
    "huggingface": "hf_abcdefghijKLMNOPqrst",
    "groq": "gsk_abcdefghij0123456789",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws temporary": "ASIAIOSFODNN7EXAMPLE",
    "google": "AIza" + "a1B2c" * 7,
    "slack": "xoxb-123456789012-abcdef",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIB+/=\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("around", ["{}", "key={}", "'{}'", "a {}, b", "({})", "\n{}\n", '"{}"', "https://x/{}"])
def test_well_known_formats_are_hidden(name, around):
    """A key of a known form is hidden although nobody told of it, and what is around it stays."""
    assert around.format(HIDDEN) == Redactor().text(around.format(FORMATS[name]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.DEF-123_x", f"Authorization: Bearer {HIDDEN}"),
        ("postgres://user:pa55@db/x", f"postgres://{HIDDEN}@db/x"),
        ("redis://:pa55word@cache:6379", f"redis://{HIDDEN}@cache:6379"),
        ("GET /v1?a=b&api_key=abcdef99&c=d", f"GET /v1?a=b&api_key={HIDDEN}&c=d"),
        ("https://h/?key=AbCdEf123456 ok", f"https://h/?key={HIDDEN} ok"),
        ("https://h/?access_token=abcdef#x", f"https://h/?access_token={HIDDEN}#x"),
    ],
)
def test_credentials_in_headers_and_addresses(text, expected):
    """The credential goes, and who it was for stays."""
    assert expected == Redactor().text(text)


@pytest.mark.parametrize(
    "text",
    [
        "the sk-learn-compatible-estimators package",
        "task-runner-with-a-long-name-0123456789 and disk-usage-0123456789abcdef",
        "Bearer authentication is needed",
        "see https://example.org:8080/a/b and http://user@host/x",
        "sorted(rows, key=lambda row: row.token)",
        "f(x)?key=short",
        "completion_tokens=12345678 max_tokens=123456789",
        "hf_transformers ghp_short AKIA xoxo-hugs eyJ.a.b",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "the password is too short; the secret of success; a token of thanks",
    ],
)
def test_ordinary_text_stays(text):
    """What only resembles a key is left as it is."""
    assert text == Redactor([SECRET]).text(text)


def test_values_that_are_no_json_are_redacted_too():
    """Secrets do not hide in tuples, sets, bytes or objects."""

    class Odd:
        def __str__(self):
            return f"<{SECRET}>"

    document = {"a": (SECRET,), "b": {SECRET}, "c": SECRET.encode(), "d": Odd(), 1: {(SECRET,): 2}}

    assert SECRET not in json.dumps(Redactor([SECRET]).document(document))


def test_a_document_that_contains_itself():
    """A cycle is cut, and what is beside it is redacted."""
    document = {"text": SECRET, "env": {"x": "y"}}
    document["self"] = document
    document["env"]["self"] = document["env"]
    found = Redactor([SECRET]).document(document)

    assert (HIDDEN, HIDDEN) == (found["text"], found["env"]["x"])
    assert SECRET not in json.dumps(found)


def test_the_given_document_stays_as_it_is():
    """Redacting makes a copy."""
    document = {"api_key": "x", "list": [SECRET]}
    Redactor([SECRET]).document(document)

    assert {"api_key": "x", "list": [SECRET]} == document


def test_variables_worth_hunting():
    """Values of telling variables count, but for mere words, short ones, and the working directory."""
    env = {
        "OPENAI_API_KEY": "abcdefgh12345678",
        "DB_PASSWORD": "correct-horse",
        "SHORT_TOKEN": "abc123",
        "MODE_SECRET": "production",
        "LONG_SECRET": "abcdefghijklmnopq",
        "PWD": "/home/user/project-1",
        "HOME": "/home/user",
        "MAX_TOKENS": "123456789",
    }

    assert ["abcdefgh12345678", "correct-horse", "abcdefghijklmnopq"] == secrets_among(env)


def test_hide_leaves_of_a_plain_text():
    """A text alone is a leaf."""
    assert (HIDDEN, "", 0) == tuple(map(hide_leaves, ("x", "", 0)))


def _seconds(redactor, text):
    taken = []
    for _ in range(5):
        began = time.process_time()
        redactor.text(text)
        taken.append(time.process_time() - began)
    return min(taken)


def test_a_megabyte_without_secrets_takes_a_blink():
    """Reading a long text for secrets costs about as much as a few searches in it, not a match at every character."""
    draw = random.Random("prose")
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz_", k=draw.randint(2, 9))) for _ in range(2000)]
    text = " ".join(draw.choices(words, k=180_000))[:1_000_000]

    assert _seconds(Redactor([SECRET, "another-secret"]), text) < 0.15


@pytest.mark.parametrize(
    "piece",
    [
        "eyJ-",
        "eyJa.",
        "-----BEGIN PRIVATE KEY-----",
        "sk-",
        "sk-a",
        "://",
        "://a:",
        "Bearer ",
        "Bearer a",
        "ghp_",
        "?key=",
        "xoxb-",
        "AKIA",
    ],
)
def test_no_text_is_slow_on_purpose(piece):
    """An agent cannot stall a run with a text that almost looks like keys: time grows as text does."""
    redactor = Redactor()
    short, long = (_seconds(redactor, piece * (size // len(piece))) for size in (50_000, 400_000))

    assert long < 0.05 + 24 * short
    assert long < 1.0
