"""Measurements, each in one run: `python -m bench`, or `make bench`."""
