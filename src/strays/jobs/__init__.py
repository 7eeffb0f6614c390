"""What a user asks for: scan, score, evaluate, report."""
