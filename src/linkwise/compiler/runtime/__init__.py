"""From a call in Python to machine code on this machine: arrays, layouts, the cache of compiled code, threads."""
