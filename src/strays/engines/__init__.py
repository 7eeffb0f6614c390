"""Who runs a scoring job: this process (local), a Ray cluster (ray), or Spark (spark)."""
