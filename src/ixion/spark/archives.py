"""Spares Spark's Python workers reading Spark's own archives before every task.

Spark puts archives on the workers' import path: `pyspark.zip`, py4j, and the jar of its core, which holds no Python at
all. Before every task it calls `importlib.invalidate_caches()`, and Python 3.11 then reads the directories of these
archives again, once for each package that was imported from them: over 6,000 entries, up to 0.1 s in each of the four
processes that a query takes. A query for two records took 0.45 s so, and takes 0.15 s without.

Spark's archives do not change while it runs, so we take them out of the importers' cache. An import that needs one
makes a new importer from the directory that `zipimport` still has. Archives of the user stay in the cache: a new one
may take the place of the old.
"""

from __future__ import annotations

import os
import sys
from zipimport import zipimporter


def spare_archives() -> None:
    """Call it in a worker, in every task: later imports may have made new importers."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and is_of_spark(finder.archive):
            sys.path_importer_cache.pop(path, None)


def is_of_spark(archive: str) -> bool:
    name = os.path.basename(archive)
    return name == "pyspark.zip" or name.startswith(("py4j-", "spark-core_"))
