"""Environments as other packages expect them, a file for each; a package is imported where it is used."""
