"""docs/bench/README.md: what the saved results say, goal by goal and row by row. Written again after every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.framework import curve
from benchmarks.framework.model import Curve
from benchmarks.framework.report import CHARTS, RESULTS, number

HEAD = """# Measured

Written by `make bench` from `benchmarks/results`. Ours and the peers ran in alternating rounds of one run; a ratio is
taken within each round, and the median of the rounds is given. A contender may also have been measured alone, on
another day (`--only`). The machine is shared: the share that others used meanwhile is given with each table.
"""


def write() -> Path:
    parts = [HEAD, *(_section(json.loads(path.read_text())) for path in sorted(RESULTS.glob("*.json")))]
    page = CHARTS / "README.md"
    page.write_text("\n".join(parts))
    return page


def _section(result: dict[str, Any]) -> str:
    machine = result["machine"]
    lines = [
        f"## {result['title']}",
        "",
        f"![{result['title']}]({result['name']}.svg)",
        "",
        f"{machine['cores']} cores, Python {machine['python']}, Java {machine['java']}, ixion {machine['ixion']}; "
        f"{machine['used_by_others_percent']} % of the machine used by others.",
        "",
    ]
    if result["goals"]:
        lines += ["| goal | ratio | wanted | met |", "|---|---|---|---|"]
        for goal in result["goals"]:
            ratio = "·" if goal["ratio"] is None else f"{goal['ratio']:.2f}"
            met = {True: "yes", False: "**no**", None: "not measured"}[goal["met"]]
            lines.append(f"| {goal['label']} | {ratio} | {goal['wanted']} | {met} |")
        lines.append("")
    if result.get("curves"):
        return "\n".join(lines + _curves(result))
    names = list(dict.fromkeys(name for row in result["rows"] for name in row["contenders"]))
    lines += [f"| median | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for row in result["rows"]:
        cells = [number(row["contenders"][name]["median"]) if name in row["contenders"] else "·" for name in names]
        lines.append(f"| {row['label']}, {row['unit']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _curves(result: dict[str, Any]) -> list[str]:
    rows = {row["key"]: row["contenders"] for row in result["rows"]}
    lines = [
        "The knee is the first size at which a rate has halved or a cost has doubled, beside the best before it.",
        "",
    ]
    for each in result["curves"]:
        points = {int(size): key for size, key in each["points"].items()}
        shape = Curve(
            title=each["title"],
            size=each["size"],
            unit=each["unit"],
            points=points,
            more_is_better=each["more_is_better"],
        )
        names = list(dict.fromkeys(name for key in points.values() for name in rows[key]))
        measured = {
            name: {size: rows[key][name]["median"] for size, key in points.items() if name in rows[key]}
            for name in names
        }
        lines += curve.table(shape, measured, number)
    return lines
