"""Studies: the same kernel over more states than one machine holds, and no results are lost when a process or a
machine fails.

======================  ==============================================================================================
``description``         what a study is: tables read and checked (``variables``, ``steps``, ``keep``, ``expression``)
``plan``                the study made ready: one traced program over columns, and what is done with them
``sampling``            the numbers of any point alone (``philox``, ``draws``, ``permutation``, ``sobol``)
``reductions``          statistics, quantiles, histograms (``moments``, ``sketch``), combined as a ``tree``
``store``               Zarr, Parquet and the ``journal`` on disk
``engines``             threads of this process; ``cluster``: Dask distributed
``run``                 all of it, from beginning to end
======================  ==============================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from linkwise.arguments.explained import explain

if TYPE_CHECKING:
    from linkwise.study.api import Study
    from linkwise.study.results import Results

__all__ = ["open_study", "study"]


def study(description: str | os.PathLike[str] | Mapping[str, Any] | None = None, **tables: Any) -> Study:
    """A study from a TOML file, from the same tables as dictionaries, or from named arguments.

    ``lw.study("torques.toml")`` or ``lw.study(robot="panda", samples=1000, vary={"q": {"uniform": "limits"}, …},
    compute={"tau": {"function": "inverse_dynamics"}}, keep={"tau": ["mean", "max"]}, seed=1)``. Named arguments replace
    those of the file. ``robot`` may be a Robot, and an entry of ``compute`` a kernel or a function. ``run`` computes it
    into a folder. See docs/studies.md.

    Args:
        description: a TOML file, or its tables as a dictionary.
        **tables: the same tables by name; they replace those of the description.

    Returns:
        A study; ``run`` computes it.

    Raises:
        StudyError: an entry is unknown or cannot be right; the message names it.
    """
    from linkwise.study.api import make

    return make(description, tables)


def open_study(path: str | os.PathLike[str]) -> Results:
    """The results in a folder that a study was run into."""
    from linkwise.study.results import Results

    return Results(path)


explain(globals(), "study")
