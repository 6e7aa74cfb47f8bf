"""Kafka's command line tools, in one JVM for all of them: a start costs two seconds, a tool a fraction of one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Self

from devtools.jvm import QUICK, compile_java, java_command
from devtools.parts import need

END = "\x01exit "
TOOLS = "org.apache.kafka.tools."


class ToolBox:
    def __init__(self, version: str = "4.3.0") -> None:
        classpath = need(f"kafka-{version}")
        classes = compile_java(Path(__file__).parent / "java" / "ToolBox.java", classpath)
        # What is logged in the background must not get between the lines: only errors are, and they go elsewhere.
        command = java_command("ToolBox", classpath=f"{classes}:{classpath}", options=["-Xmx256m", *QUICK])
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def run(self, tool: str, *words: str) -> tuple[int, str]:
        """(exit code, what it printed). A tool without dots is one of org.apache.kafka.tools."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\t".join((tool if "." in tool else TOOLS + tool, *words)) + "\n")
        process.stdin.flush()
        lines: list[str] = []
        for line in process.stdout:
            if line.startswith(END):
                return int(line.removeprefix(END)), "".join(lines).strip()
            lines.append(line)
        raise AssertionError(f"the tools ended with {process.wait()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(20)
