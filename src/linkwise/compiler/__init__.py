"""From a traced function to code: ``ir`` (graph, loops, rewriting, the interpreter that defines them), ``trace``
(functions with loops), ``emit`` (targets), ``entry`` and ``runtime`` (calls from Python). Here are the kernels that
users hold, and the shapes of programs. Robots are not known here.
"""
