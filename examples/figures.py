"""Figures of the examples: ``python examples/NN_name.py FILE.png`` draws, without a file name nothing is drawn."""

import sys


def panels(rows: int, columns: int, title: str, size=(11, 7), **options):
    """A flat array of axes to draw on, or None where no figure was asked for. It is saved when the program ends."""
    if len(sys.argv) < 2:
        return None
    import atexit

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)
    figure.suptitle(title)
    atexit.register(figure.savefig, sys.argv[1], dpi=100)
    return axes.ravel()
