"""What setup.cfg says is what the folders hold, and what is installed."""

from __future__ import annotations

import configparser
from importlib import resources
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg", "utf-8")
HOMES = dict(line.split(" = ") for line in CONFIG["options"]["package_dir"].splitlines() if line)
FACE = ROOT / HOMES["agentcompass"]


def sources():
    """Yield (dotted package, file name, path) of every module in the mapped folders."""
    for name, home in HOMES.items():
        for path in (ROOT / home).rglob("*.py"):
            if name == "agentcompass" or FACE not in path.parents:
                yield ".".join((name, *path.parent.relative_to(ROOT / home).parts)), path.name, path


def test_every_package_is_listed():
    """``find:`` cannot see mapped folders, so the list is kept by hand and by this test."""
    assert sorted({package for package, _, _ in sources()}) == CONFIG["options"]["packages"].split()


def test_every_folder_of_modules_is_a_package():
    """A folder without ``__init__.py`` would be left out of the wheel in silence."""
    folders = {path.parent for _, _, path in sources()}

    assert [] == sorted(str(f.relative_to(ROOT)) for f in folders if not (f / "__init__.py").exists())


def test_what_is_installed_is_what_is_here():
    """No module is missing from the installed package, and none is left over from an old build."""
    installed = set()
    for package in CONFIG["options"]["packages"].split():
        installed |= {(package, item.name) for item in resources.files(package).iterdir() if item.name.endswith(".py")}

    assert {(package, name) for package, name, _ in sources()} == installed
