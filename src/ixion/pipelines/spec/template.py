"""The file that `ixion pipeline init` writes: it runs unchanged, and shows the other settings in comments."""

from __future__ import annotations

from typing import Final

_TEMPLATE: Final = '''\
# A pipeline: from a topic to a table, each record exactly once.
#
#   ixion pipeline check {file}     check everything, run nothing
#   ixion pipeline run {file}       read all records, then stop; --follow keeps running
#   ixion pipeline sample {file}    send a few example orders to the topic
#
# Paths are relative to this file; hdfs://… and s3a://… work too. Lines that are commented out show other settings.

name = "{name}"
# checkpoint = ".ixion/{name}"           # where the pipeline keeps its position
# every = "30s"                         # with --follow: one batch every 30 seconds

[source]
bootstrap = "localhost:9092"
topics = ["{name}"]                      # or: pattern = "{name}-.*"
create_missing = true                   # create the topic if the broker does not have it yet
start = "earliest"                      # first run; "latest", 2026-01-31T08:00:00Z, {{ {name} = {{ 0 = 120 }} }}
include = ["partition", "offset"]       # columns kafka_partition, kafka_offset; also topic, timestamp, key …
max_records_per_batch = 1000000
# min_partitions = 4                    # run at least 4 tasks, even if the topic has fewer partitions
# [source.options]                      # for Spark's Kafka connector; ${{NAME}} is taken from the environment
# "kafka.security.protocol" = "SASL_SSL"
# "kafka.sasl.jaas.config" = "…PlainLoginModule required username='me' password='${{PASSWORD}}';"

[format]
type = "json"                           # csv, avro, protobuf, text, bytes
# Without a schema, the first run infers one from the records (JSON and CSV) and keeps it.
schema = """
    order_id STRING, customer STRING, country STRING, amount DOUBLE, at TIMESTAMP
"""
# tombstones = "drop"                   # records without a value; "keep" (as nulls), "quarantine"
# strict = false                        # JSON: accept more than RFC 8259, and ignore text after the first object
# repeated_keys = "last"                # JSON: use the last value of a repeated key; the default is "quarantine"
# key_case = "ignore"                   # JSON: "ID" is the field id
# [format.drift]                        # for records whose fields are not those of the schema
# new = "add"                           # add columns; "keep" (in _extra, as JSON), "quarantine", "fail", "ignore"
# missing = "quarantine"                # "null", "fail"
# retyped = "quarantine"                # "null", "fail"

# A record that breaks one of these is not lost: it goes to the quarantine table with its raw bytes and the reason.
[[expectations]]
name = "has an id"
check = "order_id IS NOT NULL"
otherwise = "quarantine"                # "warn", "drop", "fail"

[[expectations]]
name = "amount is positive"
check = "amount > 0"
otherwise = "quarantine"

# Steps run one after the other; `stream` is the result of the step before.
[[steps]]
sql = "SELECT *, date(at) AS day FROM stream"

# [[steps]]
# watermark = {{ column = "at", delay = "10 minutes" }}      # rows that are later than this are dropped
# [[steps]]
# deduplicate = ["order_id"]
# [[steps]]
# window = {{ column = "at", size = "1 hour", by = ["country"], aggregates = {{ revenue = "sum(amount)" }} }}
# [tables.customers]
# path = "customers.parquet"
# [[steps]]
# join = {{ table = "customers", on = ["customer"] }}
# [[steps]]
# python = "my_steps:enrich"             # a function DataFrame -> DataFrame in my_steps.py beside this file

[[sinks]]
type = "parquet"                        # "delta", "iceberg", "topic", "console"; write as many [[sinks]] as you like
path = "lake/{name}"
partition_by = ["day"]
# mode = "upsert"                       # delta, iceberg: one row for each key, the newest; "scd2": one for each version
# keys = ["order_id"]
# [sinks.upkeep]                        # at the end of a run; with every = "1 hour", on a schedule
# compact_below_mb = 32                 # join smaller files
# keep = "7 days"                       # delta, iceberg: remove old versions

# [[sinks]]
# type = "topic"
# topic = "{name}-clean"
# key = "order_id"
# exactly_once = true                   # each batch in one transaction; without it, a repeated batch is there twice

# [quarantine]
# path = "lake/{name}_quarantine"

# [spark]
# master = "spark://host:7077"          # default: this machine, all cores
# conf = {{ "spark.driver.memory" = "2g" }}
# class_archive = false                 # do not speed up Spark's start with an archive of its classes
'''


def template(name: str) -> str:
    return _TEMPLATE.format(name=name, file=f"{name}.toml")
