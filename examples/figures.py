"""Figures of the examples: ``python examples/NN_name.py FILE.png`` draws, without a file name nothing is drawn."""

import sys

FILES = [word for word in sys.argv[1:] if not word.startswith("--")]


def size(small: int, full: int) -> int:
    """The small number, or the full one where ``--full`` is on the command line."""
    return full if "--full" in sys.argv else small


def panels(rows: int, columns: int, title: str, size=(11, 7), **options):
    """A flat array of axes to draw on, or None where no figure was asked for. It is saved when the program ends."""
    if not FILES:
        return None
    import atexit

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from linkwise.report import COLOURS

    plt.rc(
        "axes", prop_cycle=plt.cycler(color=COLOURS)
    )  # those of the reports, told apart without red and green
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)
    figure.suptitle(title)
    atexit.register(figure.savefig, FILES[0], dpi=100)
    return axes.ravel()
