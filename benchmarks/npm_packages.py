"""Peers that are packages of npm, fetched when a measurement asks for them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from benchmarks.processes import NotMeasured

INSTALL_SECONDS_MAX = 240


def install(package: str, folder: Path) -> None:
    """On return the package is below `folder`, fetched now or before."""
    if (folder / "node_modules" / package).is_dir():
        return
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotMeasured("npm and node are not installed")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n')
    try:
        subprocess.run(
            [npm, "install", "--silent", "--no-audit", "--no-fund", package],
            cwd=folder,
            check=True,
            timeout=INSTALL_SECONDS_MAX,
            capture_output=True,
        )
    except (subprocess.SubprocessError, OSError) as problem:
        raise NotMeasured(f"npm could not install {package}") from problem
