"""The options of `ixion serve`, apart from it: help and completion need no broker."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from ixion.cli.command import Command, Exit, Kind, Option

LOG_FORMATS: Final = ("text", "json")
LOG_LEVELS: Final = ("debug", "info", "warning", "error", "critical")


class Chosen(NamedTuple):
    config: str | None
    assignments: list[str]
    data: str | None
    port: int | None
    allow_remote: bool
    metrics_port: tuple[str, int] | Literal["off"] | None
    log_format: str
    log_level: str
    quiet: bool


def run(**values: Any) -> None:
    from ixion.cli.serve.run import start

    raise Exit(start(Chosen(**values)))


def port(word: str) -> int:
    if ":" in word:
        raise ValueError(f"must be a number; for another address: --set listeners=PLAINTEXT://{word} --allow-remote")
    if not word.isascii() or not word.isdigit() or int(word) > 65535:
        raise ValueError(
            f"must be a whole number, not {word!r}" if not word.isdigit() else f"is at most 65535, not {word}"
        )
    return int(word)


def pages_address(word: str) -> tuple[str, int] | str:
    if word == "off":
        return word
    host, _, number = word.rpartition(":")
    if not number.isascii() or not number.isdigit() or int(number) > 65535:
        raise ValueError(f"must be a port, HOST:PORT or off, not {word!r}")
    return host.strip("[]") or "127.0.0.1", int(number)


def one_of(words: tuple[str, ...]) -> Kind:
    def read(word: str) -> str:
        if word not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {word!r}")
        return word

    return read


SERVE: Final = Command(
    "serve",
    "Serve Kafka clients until SIGTERM or Ctrl-C, by default on the loopback address.",
    run,
    details="Settings have Kafka's names. They come from --config, from variables such as IXION_LOG_DIRS, and from"
    " --set, which wins.",
    options=(
        Option(
            "port",
            "--port -p",
            "Short for --set listeners=PLAINTEXT://127.0.0.1:N (default: 9092; 0: any).",
            metavar="N",
            kind=port,
        ),
        Option(
            "data", "--data -d", "Short for --set log.dirs=DIR (default: ixion-data).", metavar="DIR", complete="file"
        ),
        Option(
            "config",
            "--config -c",
            "A file of settings, such as Kafka's server.properties.",
            metavar="FILE",
            complete="file",
        ),
        Option(
            "assignments",
            "--set -s",
            "A setting; may be repeated.",
            metavar="NAME=VALUE",
            many=True,
            complete="setting",
        ),
        Option("allow_remote", "--allow-remote", "Allow listeners that other machines can reach."),
        Option(
            "metrics_port",
            "--metrics-port",
            "Address of the live page, /metrics and /healthz (default: 127.0.0.1:9644, or none if that is in use).",
            metavar="[HOST:]N|off",
            kind=pages_address,
        ),
        Option(
            "log_level",
            "--log-level",
            "Lowest level to log.",
            metavar="LEVEL",
            kind=one_of(LOG_LEVELS),
            default="warning",
            complete="|".join(LOG_LEVELS),
        ),
        Option(
            "log_format",
            "--log-format",
            "Format of the log.",
            metavar="text|json",
            kind=one_of(LOG_FORMATS),
            default="text",
            complete="text|json",
        ),
        Option("quiet", "--quiet -q", "Print nothing when it is ready."),
    ),
    examples=("ixion serve", "ixion serve --port 19092 --data /var/lib/ixion --set num.partitions=3"),
)
