"""Topics as a Spark data source, without a JVM connector: `format("ixion")` for `spark.read` and `spark.readStream`.

Spark 4 finds it by itself (`pyspark_ixion`). `options` reads the options, which are those of Spark's Kafka connector;
`places` turns them into ranges of offsets; `split` cuts ranges into tasks; `source` has the classes that Spark calls;
`archives` and `memory` make its workers quicker.
Records come as Arrow batches from `ixion.clients`, so it works with every broker that speaks Kafka's protocol.
"""
