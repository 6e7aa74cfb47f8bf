"""The order stream of examples/orders, as its README tells it, with the output that it promises."""

from __future__ import annotations

import ast
import importlib.util
import textwrap
from pathlib import Path

from ixion.pipelines.source.example_orders import order_events
from ixion.pipelines.spec import read_spec
from ixion.testing import Broker
from tests.pipelines.support import Lab

FOLDER = Path(__file__).parents[2] / "examples" / "orders"


def promised() -> list[str]:
    docstring = ast.get_docstring(ast.parse((FOLDER / "revenue.py").read_text("utf-8"))) or ""
    return textwrap.dedent(docstring.partition("\nPrints:\n\n")[2]).splitlines()


def test_the_order_stream(lab: Lab, broker: Broker) -> None:
    from ixion.pipelines import Pipeline

    text = (FOLDER / "orders.toml").read_text("utf-8").replace("localhost:9092", broker.bootstrap)
    pipeline = Pipeline(read_spec(text, folder=lab.folder))
    assert pipeline.send_sample(lab.spark, 1000) == "orders"
    figures = pipeline.run(lab.spark)
    unique = {event.value for event in order_events(1000)}
    bad = [value for value in unique if b"a lot" in value or b": -1.0" in value or not value.endswith(b"}")]
    assert figures.rows_in == 1000
    assert figures.rows_out == len(unique) - len(bad)
    found = importlib.util.spec_from_file_location("revenue", FOLDER / "revenue.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert module.revenue(lab.spark, str(lab.folder / "lake/orders")) == promised()
