"""A page about a file: what was found, why, and how far to trust it. `layout` and `map.js` are shared with the desk."""

from strays.jobs.report.report import Report

__all__ = ["Report"]
