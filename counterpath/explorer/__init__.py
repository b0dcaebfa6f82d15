"""The what-if explorer: an HTTP API and a page on one fitted model."""

from counterpath.explorer.app import create_app
from counterpath.explorer.limits import Limits

__all__ = ["Limits", "create_app"]
