"""Real parts for tests and benchmarks: JVMs, jars from Maven Central, Apache Kafka itself.

Not part of the installed package. Tests and benchmarks run from the checkout and import it as `devtools`.
"""
