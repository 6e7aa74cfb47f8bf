"""`python -m devtools.apps [NAME …]`: run applications against ixion, and beside Apache Kafka those that fail."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from devtools.apps.app import App
from devtools.apps.catalog import APPS
from devtools.kafka import RealKafka
from devtools.programs import PartMissing
from ixion.testing import Broker

KAFKA = "4.3.0"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m devtools.apps", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *(app.name for app in APPS)], help="default: all of them")
    chosen = parser.parse_args().names
    failed = missing = 0
    for app in APPS:
        if chosen and app.name not in chosen:
            continue
        begun = time.monotonic()
        try:
            fault = against_ixion(app)
        except PartMissing as error:
            missing += 1
            print(f"{app.name:12} not to be had: {error}", flush=True)
            continue
        took = f"{time.monotonic() - begun:5.1f} s"
        if fault is None:
            print(f"{app.name:12} works   {took}  {app.scenario}", flush=True)
            continue
        failed += 1
        beside = against_kafka(app)
        print(f"{app.name:12} FAILS   {took}  {app.scenario}\n  {fault}", flush=True)
        print(f"  with Apache Kafka {KAFKA} {'it works' if beside is None else f'it fails, too: {beside}'}", flush=True)
    print(f"{failed} failed, {missing} not to be had")
    sys.exit(1 if failed else 0)


def against_ixion(app: App) -> Exception | None:
    with Broker() as broker:
        return attempt(app, broker.bootstrap)


def against_kafka(app: App) -> Exception | None:
    with tempfile.TemporaryDirectory() as data, RealKafka(KAFKA, Path(data)) as kafka:
        return attempt(app, kafka.bootstrap)


def attempt(app: App, bootstrap: str) -> Exception | None:
    with tempfile.TemporaryDirectory(prefix=f"{app.name}-") as folder:
        try:
            app.run(bootstrap, Path(folder))
        except PartMissing:
            raise
        except Exception as error:
            return error
    return None


main()
