"""The folder of a study on disk: files, journal, digests, what is complete."""
