"""What a reader must know about the machine to place the numbers; nothing that names it or its owner."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from devtools.programs import tool
from ixion.cli.main import build_kind


def facts() -> dict[str, str | int]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "java": _java(),
        "ixion": f"{version('ixion')} {build_kind()}",
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _java() -> str:
    told = subprocess.run([tool("java"), "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'"([^"]+)"', told)
    return found[1] if found else told.splitlines()[0]
