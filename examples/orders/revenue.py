"""What the orders brought, by country: a query over the Delta table that the pipeline beside this file fills.

    ixion serve &
    ixion pipeline sample orders.toml      # 1,000 events: some late, some sent twice, some broken
    ixion pipeline run orders.toml
    python revenue.py lake/orders

Prints:

    AT   181 orders   18263.99
    DE   185 orders   17497.91
    FR   181 orders   18159.85
    IT   201 orders   20529.24
    PL   171 orders   18125.32
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ixion.pipelines import open_session


def revenue(spark: SparkSession, table: str) -> list[str]:
    orders = spark.read.format("delta").load(table)
    sums = orders.groupBy("country").agg(F.count("*").alias("orders"), F.sum("amount").alias("revenue"))
    return [f"{row.country}   {row.orders} orders   {row.revenue:.2f}" for row in sums.orderBy("country").collect()]


if __name__ == "__main__":
    for line in revenue(open_session("revenue", formats=["delta"]), sys.argv[1]):
        print(line)
