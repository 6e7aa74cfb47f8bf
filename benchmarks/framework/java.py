"""A peer on the JVM: a small Java program that stays alive through the rounds and answers line by line.

    peer = session.enter(JavaPeer("TimerPeer", "kafka-3.9.1"))      # benchmarks/java/TimerPeer.java
    peer.ask("add-cancel", 10_000)  ->  {"fresh": 389.0, "again": 341.5}

One JVM for all rounds lets its compiler warm up once; it sleeps while others are measured. A question is one line
of words, an answer one line of `name=number` words.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType

from devtools import jars
from devtools.jvm import compile_java, java_command

SOURCES = Path(__file__).resolve().parent.parent / "java"


class JavaPeer:
    def __init__(self, program: str, jar_set: str, *, heap: str = "4g") -> None:
        self.program = program
        libraries = jars.classpath(jar_set)
        classes = compile_java(SOURCES / f"{program}.java", libraries)
        self._command = java_command(
            program, classpath=f"{classes}:{libraries}", options=[f"-Xms{heap}", f"-Xmx{heap}"]
        )
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> JavaPeer:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        process, self._process = self._process, None
        assert process is not None
        process.kill()  # it holds nothing worth a farewell
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()

    def ask(self, *question: object) -> dict[str, float]:
        process = self._process
        assert process is not None, "ask inside the with block"
        assert process.stdin is not None
        assert process.stdout is not None
        print(*question, file=process.stdin, flush=True)
        for line in process.stdout:
            if line.startswith("= "):  # all else is what the measured classes print themselves
                return {name: float(value) for name, value in (word.split("=") for word in line[2:].split())}
        raise RuntimeError(f"{self.program} ended instead of answering {question}")
