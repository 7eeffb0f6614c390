"""The review desk: people say what the strays are, and the model learns from it."""
