"""One page that tells a reader who was not there how far to trust a model."""

from counterpath.report.page import write_report

__all__ = ["write_report"]
