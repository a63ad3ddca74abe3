"""Pieces of single commands: what a command counts, prints or generates, where its file would be too long."""
