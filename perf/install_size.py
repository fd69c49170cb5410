"""Size and number of distributions of the base install, in a fresh virtual environment.

python perf/install_size.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        site = Path(
            subprocess.run(
                [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
        )
        before = _measure(site)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", str(ROOT)], check=True)
        after = _measure(site)
    print(f"{after[0] - before[0]} distributions (limit 15)")
    print(f"{(after[1] - before[1]) / 1e6:.1f} MB (limit 20)")


def _measure(site: Path) -> tuple[int, int]:
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    return len(list(site.glob("*.dist-info"))), size


if __name__ == "__main__":
    sys.exit(main())
