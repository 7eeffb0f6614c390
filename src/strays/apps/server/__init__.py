"""Scores over HTTP: saved models behind a REST interface, for services and pipelines."""
