"""One command, one file: each reads its options, calls one job, and shows the result."""
