"""Topics in Spark without a JVM connector: `format("ixion")` for `read`, `readStream`, `write` and `writeStream`.

Spark 4 finds it by itself (`pyspark_ixion`). `options` reads the options, which are those of Spark's Kafka connector;
`places` turns them into ranges of offsets; `split` cuts ranges into tasks; `source` has the classes that Spark calls;
`archives` and `memory` make its workers quicker.

For writing, `sink` has the classes, `sink_options` the options. `outgoing` turns rows into records, `staging` carries
them from the tasks to the driver, and `commit` writes a batch exactly once.

Records come as Arrow batches from `ixion.clients`, so it works with every broker that speaks Kafka's protocol.
"""
