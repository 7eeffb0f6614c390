"""What runs a transformer, batches of token ids to embeddings: choice says which runtime, where and how exactly."""
