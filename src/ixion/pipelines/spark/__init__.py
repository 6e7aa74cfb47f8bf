"""Starting Spark, and everything that reaches into its JVM: jars, classes, files of Hadoop, error texts."""
