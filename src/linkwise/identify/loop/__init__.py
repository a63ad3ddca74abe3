"""Identification by simulating the closed loop of a recording: DIDIM and CLOE."""
