"""`make first-hour`: an empty environment, ixion installed into it with pip, then every document from top to bottom.

Takes minutes: installing compiles, and the pipelines need Spark, Java and port 9092. The transcript is in
.first-hour/transcript.md, whatever comes of it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import venv

from devtools.dist import clean_environment
from devtools.first_hour.document import PAGES, ROOT
from devtools.first_hour.newcomer import Newcomer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m devtools.first_hour", description=__doc__)
    parser.add_argument("pages", nargs="*", default=PAGES, help="default: all of them")
    parser.add_argument("--package", default=str(ROOT), help="what pip installs in place of the checkout")
    given = parser.parse_args()
    home = ROOT / ".first-hour"
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home / "venv", with_pip=True)
    programs = home / "venv" / "bin"
    # A mirror of Maven Central may not have the connector of the newest Spark yet: take the one that the tests have.
    pinned = home / "constraints.txt"
    pinned.write_text("".join(re.findall(r"^pyspark==\S+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)))
    environment = clean_environment(
        PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
        VIRTUAL_ENV=str(home / "venv"),
        PIP_CONSTRAINT=str(pinned),
    )
    # README.md runs in a clone with an environment of its own; the other pages share this one.
    first = next((page for page in given.pages if page != "README.md"), None)
    faults: list[str] = []
    with (home / "transcript.md").open("w") as transcript:
        for page in given.pages:
            print(page, flush=True)
            folder = home / re.sub(r"\W", "-", page)
            folder.mkdir()
            newcomer = Newcomer(folder, str(programs / "python"), environment, package=given.package, clone=ROOT)
            try:
                if page == first:
                    newcomer.install(page, "pip install . pytest confluent-kafka")
                newcomer.read(page)
            except subprocess.TimeoutExpired as error:
                faults.append(f"{page}: {error}")
            finally:
                transcript.write("\n".join(newcomer.transcript))
                faults += newcomer.faults
    print("\n".join(faults))
    print(f"{len(faults)} differ from what the documents show; all of it is in {home / 'transcript.md'}")
    sys.exit(1 if faults else 0)


main()
