"""The checker of shapes and types that runs over the package in tests; an int passes for a float, as in PEP 484."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
