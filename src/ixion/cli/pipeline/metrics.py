"""The figures of a running pipeline over HTTP: /metrics for Prometheus, /figures as JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from ixion.pipelines.batch.metrics import BatchFigures, RunFigures, prometheus_of
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.upkeep.results import Totals, Upkept, plus, upkeep_lines


class FiguresPage:
    def __init__(self, pipelines: Sequence[str]) -> None:
        self.figures: Final = {name: RunFigures() for name in pipelines}
        self.upkeep: Final[dict[str, dict[str, Totals]]] = {name: {} for name in pipelines}
        self.port = 0

    def add(self, pipeline: str, batch: BatchFigures) -> None:
        self.figures[pipeline] = self.figures[pipeline].plus(batch)

    def add_upkeep(self, pipeline: str, done: Upkept) -> None:
        """Replaces the mapping of PIPELINE: a scrape may be reading the old one."""
        tables = self.upkeep[pipeline]
        self.upkeep[pipeline] = {**tables, done.table: plus(tables.get(done.table, {}), done.to_json())}

    def answer(self, path: str) -> tuple[str, str] | None:
        """Type and text of what is at PATH."""
        if path == "/metrics":
            return "text/plain; version=0.0.4", prometheus_of(self.figures) + "".join(upkeep_lines(self.upkeep))
        if path == "/figures":
            each = [
                {"pipeline": name, **figures.to_json(), "upkeep": self.upkeep[name]}
                for name, figures in self.figures.items()
            ]
            return "application/json", json.dumps(each[0] if len(each) == 1 else each)
        return None


@contextmanager
def serve_figures(pipelines: Sequence[str], port: int) -> Iterator[FiguresPage]:
    """On the loopback address; port 0 takes a free one."""
    page = FiguresPage(pipelines)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = page.answer(self.path)
            self.send_response(200 if found else 404)
            kind, text = found or ("text/plain", "there are /metrics and /figures\n")
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Prints nothing: the terminal is for the pipeline."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise PipelineError(f"--metrics-port {port} cannot be used: {error.strerror}") from None
    page.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, name="pipeline-figures", daemon=True)
    thread.start()
    try:
        yield page
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
