"""The intermediate representation: the graph of expressions, loops around it, rewriting, order, and the
interpreter that defines what all of it means. No machine, no target.
"""
