"""The version of this package, which is that of the program it calls (tests compare the two)."""

__version__ = "0.2.0"
