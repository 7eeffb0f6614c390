"""A fault at every file-system call of a command, one run for each call; see run.py."""
