"""Recordings: from files to signals that a regression can use. No parameters are estimated here."""
