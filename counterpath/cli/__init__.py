"""The shell: each command is one call of the library. Nothing heavy is loaded before a command runs."""

from counterpath.cli.app import app, main

__all__ = ["app", "main"]
