"""C packages for controllers' computers: several functions of one robot with everything to build and check them."""

from linkwise.embedded.entries import ENTRIES, Entry, Options, entries
from linkwise.embedded.package import Package, PackageError

__all__ = ["ENTRIES", "Entry", "Options", "Package", "PackageError", "entries"]
