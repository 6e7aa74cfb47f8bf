"""What a pipeline keeps in its checkpoint besides the files of Spark."""
