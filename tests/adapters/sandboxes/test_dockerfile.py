"""Tests of the reader of Dockerfiles: lines, flags, forms and words."""

from __future__ import annotations

import pytest

from agentcompass.adapters.sandboxes.dockerfile import DockerfileError, expand, pairs, parse, split


def _read(text):
    return [(step.line, step.name, step.text) for step in parse(text).instructions]


def test_lines_go_on_and_comments_go():
    """A comment inside a continued line is dropped; numbers are those of first lines."""
    text = (
        "# one\nfrom x\n\nRUN a && \\\n  # not this\n\n  b \\\n  c\n  # two\nENV A=1 # no comment\nRUN echo \\\\\nCMD x"
    )

    assert [
        (2, "FROM", "x"),
        (4, "RUN", "a &&   b   c"),
        (10, "ENV", "A=1 # no comment"),
        (11, "RUN", "echo \\CMD x"),
    ] == _read(text)


def test_another_escape_character():
    """The directive at the very top chooses it; elsewhere it is a comment."""
    assert [(3, "FROM", "x"), (4, "RUN", "dir C:\\"), (5, "RUN", "a b")] == _read(
        "# syntax=docker/dockerfile:1\n# Escape=`\nFROM x\nRUN dir C:\\\nRUN a `\nb\n"
    )
    assert "\\" == parse("# a comment\n# escape=`\nFROM x").escape
    with pytest.raises(DockerfileError, match="'x' cannot be the escape"):
        parse("# escape=x\nFROM y")


def test_flags_and_json_forms():
    """Flags come before the text; a JSON list of strings is one, whatever else begins with a bracket is not."""
    copy, run, shell = parse('COPY --chmod=755 --link a b\nRUN ["a", "b c"]\nRUN [ -f x ] || y').instructions

    assert ({"chmod": "755", "link": ""}, "a b", None) == (copy.flags, copy.text, copy.words)
    assert ("a", "b c") == run.words
    assert (None, "[ -f x ] || y") == (shell.words, shell.text)


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("RUN cat <<EOF", True),
        ("RUN <<-'END' sh", True),
        ("COPY <<EOF /x", True),
        ("RUN cat <<< word", False),
        ("RUN echo $((1 <<2))", False),
        ("RUN echo $((1<<N))", False),
        ("LABEL x=<<EOF", False),
    ],
)
def test_here_documents_are_refused(line, refused):
    """And what only looks like one is not."""
    if refused:
        with pytest.raises(DockerfileError, match="here-document") as caught:
            parse(f"FROM x\n{line}")
        assert 2 == caught.value.line
    else:
        assert 2 == len(parse(f"FROM x\n{line}").instructions)


def test_what_is_no_instruction_is_refused():
    """With its line."""
    with pytest.raises(DockerfileError, match="'<html>' is no instruction") as caught:
        parse("FROM x\n\n<html>\n")
    assert 3 == caught.value.line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("'a  b' \"c d\"e", ["a  b", "c de"]),
        ("a\\ b \\$A", ["a b", "$A"]),
        ("$A ${A}b '$A' \"$A\" $NONE-", ["one", "oneb", "$A", "one", "-"]),
        ("${NONE:-x y} ${EMPTY:-d} ${EMPTY-d}. ${A:+yes} ${NONE:+no}.", ["x y", "d", ".", "yes", "."]),
        ("${NONE:-${A}}", ["one"]),
        ('"a \\"b\\" \\n \'c\'"', ["a \"b\" \\n 'c'"]),
        ("''", [""]),
        ("$ 5$", ["$", "5$"]),
    ],
)
def test_words_are_unquoted_and_filled_in(text, words):
    """As Docker's own reader does it."""
    assert words == split(text, {"A": "one", "EMPTY": ""})


@pytest.mark.parametrize("text", ["'a", '"a', "${A", "${A:?x}"])
def test_what_does_not_close_is_refused(text):
    """Quotes and braces."""
    with pytest.raises(ValueError, match="."):
        split(text, {})


def test_variables_are_given_in_two_ways():
    """Several with equals signs, or one and its value, blanks and all."""
    known = {"A": "1"}

    assert [("X", "a b"), ("Y", "1"), ("Z", "")] == pairs("X='a b' Y=$A Z=", known)
    assert [("X", "a  b=1")] == pairs("X a  b=$A", known)
    assert "a b" == expand("a b", known)
    for broken in ("", "X", "=1", "X=1 Y"):
        with pytest.raises(ValueError, match="NAME=value"):
            pairs(broken, known)
