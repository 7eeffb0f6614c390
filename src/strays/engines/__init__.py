"""Who runs a scoring job: this process, a Ray cluster, or Spark."""
