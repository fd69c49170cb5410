"""Names of tasks and runs as file names."""

from __future__ import annotations

import random
import unicodedata

import pytest

from agentcompass.core.records.names import LONGEST, run_levels, run_namespace, safe_name, task_file_name, task_id_of

ALPHABETS = (
    "abcABC019 -_.~%/\\:*?\"<>|'$&",
    "äÄßẞıİſςσΣéÉ",
    "\u0301\u0308\u200b\u00a0\ufeff\u202e",
    "任务评估かなカナﾊﾝｶｸ",
    "한국어\u1100\u1161\u11a8\u115f",
    "абвАБВґҐ",
    "אבגדهوزحक्षिก็",
    "ⅣⅳＡａ①㎏ﬁ",
    "😀👩\u200d💻\U0001f1e9\U0001f1ea",
    "\ud800\udfff\x00\x1f\n\t",
    "ǅǄǆᏣꮳგႠⴀ",
)


def _drawn(count: int) -> list[str]:
    draw = random.Random("names of tasks")
    ids = {""}
    while len(ids) < count:
        alphabet = draw.choice(ALPHABETS) if draw.random() < 0.7 else "".join(draw.sample(ALPHABETS, 3))
        text = "".join(draw.choice(alphabet) for _ in range(draw.choice((1, 2, 3, 5, 12, 60))))
        form = draw.choice((None, "NFC", "NFD", "NFKC", "NFKD"))
        ids |= {text if form is None else unicodedata.normalize(form, text), text.swapcase(), f"{text}~1", f"%{text}"}
    return sorted(ids)


IDS = _drawn(4000)
LISTED = [
    "HumanEval/0", "a", "A", "aA", "Aa", "con", "CON", "Con.txt", "nul.", "com1", "COM¹", "lpt9.x", "aux~1",
    "..", ".", "...", "_error_x", "-rf", ".hidden", "a.", "a ", " a", "a/b", "a%2Fb", "a%2fb",
    "x" * 300, "X" * 300, "x" * 299 + "y", "任" * 100,
    "é", "e\u0301", "Ω", "Ω", "ﬁ", "fi", "\u1100\u1161", "가", "a~1", "A~1", "a~", "~", "~~", "%", "%%41", "@a+b=c,d",
    "conin$", "clock$", "desktop.ini", "a:b", "a\\b", "\n", "\x00", "😀",
]  # fmt: skip

NAMES = {task_id: task_file_name(task_id) for task_id in [*LISTED, *IDS]}


def test_no_two_tasks_share_a_file_on_any_disk():
    """Names differ also where a disk folds case and normalizes letters."""
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        seen: dict[str, str] = {}
        for task_id, name in NAMES.items():
            assert task_id == seen.setdefault(unicodedata.normalize(form, name).casefold(), task_id)


def test_a_disk_that_normalizes_changes_no_name():
    """A name comes back from any disk as it was written."""
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert [] == [name for name in NAMES.values() if unicodedata.normalize(form, name) != name]


def test_short_names_are_reversible():
    """The id of a task can be read from its file name, unless that ends in a digest."""
    found = {task_id: task_id_of(name) for task_id, name in NAMES.items()}
    wrong = [task_id for task_id, back in found.items() if back not in (task_id, None)]
    untold = [task_id for task_id, back in found.items() if back is None]

    assert [] == wrong
    assert {True} == {not task_id or "~~" in NAMES[task_id] for task_id in untold}
    assert len(untold) < len(found) / 4


@pytest.mark.parametrize("name", ["%FF", "%C3", "%zz", "A", "a~2", "a~1", "%41", "x/y", "~", "%2f", "\ud800"])
def test_a_name_that_no_task_gets_tells_nothing(name):
    """A file that somebody else put there is not taken for a task's."""
    assert task_id_of(name) is None


def test_every_system_takes_the_names():
    """No separators, controls, reserved devices, leading or trailing marks; short enough with all that is added."""
    reserved = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³")}
    for name in NAMES.values():
        assert 0 < len(name.encode("utf-8")) <= LONGEST
        assert not set(name) & set('/\\:*?"<>| \x00\x1f\n\x7f')
        assert not name.startswith((".", "_", "-"))
        assert not name.endswith((".", " "))
        assert name.split(".")[0].lower() not in reserved
    assert len(f"_error_.{'x' * LONGEST}.json.tmp") <= 255


def test_readable_names_stay_readable():
    """Ordinary ids of tasks are their own file names, in any script without cases."""
    ids = ["astropy__astropy-12907", "fix-git", "task_1.2", "任务", "かな", "משימה"]

    assert ids == [task_file_name(task_id) for task_id in ids]
    assert "HumanEval%2F0~21" == task_file_name("HumanEval/0")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt-4.1", "gpt-4.1"),
        ("org/model:free", "org_model_free"),
        ("模型 一", "模型_一"),
        ("e\u0301", "é"),
        ("..", "_"),
        ("", "_"),
        ("  ", "_"),
        ("con", "_con"),
        ("Com1.x", "_Com1.x"),
        ("_a_", "a"),
        ("a" * 120, "a" * 120),
        ("\ud800a", "a"),
        ("../../etc", "etc"),
    ],
)
def test_safe_names(text, name):
    """A safe name keeps letters of any script and has one form for each text."""
    assert name == safe_name(text)


def test_safe_names_are_short_and_stay_apart():
    """Names that would be too long are cut, and still differ."""
    names = [safe_name("任" * 200 + end) for end in ("a", "b")]

    assert 2 == len(set(names))
    assert max(len(name.encode()) for name in names) <= 120


@pytest.mark.seed("RE-01")
def test_the_namespace_of_runs():
    """Model, benchmark and harness are joined by underscores; a run without a model has two parts."""
    assert "org_m_b_h" == run_namespace("org/m", "b", "h")
    assert "b_h" == run_namespace(None, "b", "h")


@pytest.mark.parametrize(
    ("run_name", "levels"),
    [
        ("", ()),
        ("ablation", ("ablation",)),
        ("a/b", ("a", "b")),
        ("a\\b//c/", ("a", "b", "c")),
        ("../../etc/passwd", ("etc", "passwd")),
        (" .. / . /x", ("x",)),
        ("/abs", ("abs",)),
        ("~/x", ("_", "x")),
    ],
)
def test_a_run_name_never_leaves_the_results_folder(run_name, levels):
    """Slashes make levels, and none of them leads up."""
    assert levels == run_levels(run_name)
