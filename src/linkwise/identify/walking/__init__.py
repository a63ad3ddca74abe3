"""Identification of robots that walk: a base that moves, feet whose forces are not measured."""
