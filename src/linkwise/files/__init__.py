"""Files that are not robots: outputs that appear whole or not at all, settings in TOML, tables of numbers
(``tables``). Robot files are in ``linkwise.formats``.
"""
