"""What every test may count on: no configuration, credentials or plugins of the machine that it runs on."""

from __future__ import annotations

import os

import pytest
from support.running import Command, runner

from agentcompass.core.redaction import is_secret_name


@pytest.fixture(autouse=True)
def _hermetic(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hide the user's configuration and credentials, and stand in an empty folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))
    for name in list(os.environ):
        if is_secret_name(name):
            monkeypatch.delenv(name)


@pytest.fixture
def command(tmp_path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``agentcompass run ...`` in this process."""
    return runner(tmp_path, capsys)
