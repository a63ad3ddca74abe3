"""Several functions of a robot as one kernel: what they have in common is computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from linkwise.compiler.kernel import Kernel
from linkwise.errors import LinkwiseError, UnknownNameError
from linkwise.functions.table import Function, Setting, function_named, labels_of
from linkwise.robot.kernels import cheapest_recorded, chosen_algorithm, is_straight, regroups

if TYPE_CHECKING:
    from linkwise.compiler.ir.program import Recorded


def combined_kernel(names: Sequence[str], setting: Setting, dtype: str) -> Kernel:
    """One kernel for several functions of the same robot.

    Args:
        names: the functions; each by its default algorithm.
        setting: the robot and the options that hold for all of them.
        dtype: "float64" or "float32".

    Returns:
        A kernel that takes every input of these functions once, in the order in which they first appear, and gives all
        outputs in the order of the functions. A single output is called like its function.

    Raises:
        LinkwiseError: a function of this robot is too large to be compiled as straight-line code.
    """
    functions = [function_named(name) for name in dict.fromkeys(names)]
    if not functions:
        raise UnknownNameError("kernel: expected the name of a function, got none")
    parts = [_Part(function, setting) for function in functions]
    sizes: dict[str, int] = {}
    for part in parts:
        sizes |= part.function.input_sizes(part.setting)
    shapes = {name: shape for part in parts for name, shape in part.shapes.items()}
    title = "_and_".join(function.name for function in functions)

    def build(precision: str) -> Any:
        from linkwise.compiler.ir.program import lower

        nodes = _cheapest(parts, sizes, shapes, precision)
        return lower(nodes, sizes, name=title, dtype=precision)  # type: ignore[arg-type]

    content = (setting.model.content(), [(p.function.name, p.algorithm, p.setting.options()) for p in parts])
    key = hashlib.sha256(repr(content).encode()).digest()
    made = Kernel(title, sizes.items(), shapes.items(), dtype, build, key)
    made.labels = labels_of(setting.model, sizes)
    made.output_labels = {name: labels for part in parts for name, labels in part.labels.items()}
    made.origin = (combined_kernel, (tuple(names), setting, dtype))
    return made


class _Part:
    """One of the functions, with its algorithm and setting."""

    def __init__(self, function: Function, setting: Setting):
        self.function = function
        self.algorithm = chosen_algorithm(function, setting, None)
        self.setting = replace(setting, base_parameters=regroups(function, self.algorithm))
        if not is_straight(function, self.setting, self.algorithm):
            raise LinkwiseError(
                f"{function.name} has too many links to share a kernel with others: it is compiled as loops over them"
            )
        own = function.shapes(setting.model)
        single = len(own) == 1
        titles = {name: function.name if single else f"{function.name}_{name}" for name in own}
        self.shapes = {titles[name]: shape for name, shape in own.items()}
        self.labels = {titles[name]: labels for name, labels in labels_of(setting.model, own).items()}

    def outputs(self, slide: bool, precision: str, given: dict[str, Any]) -> dict[str, Any]:
        from linkwise.functions.evaluation import outputs_of

        setting = replace(self.setting, slide=slide, dtype=precision)
        wanted = {name: given[name] for name in self.function.input_sizes(setting)}
        made = outputs_of(self.function, setting, self.algorithm, **wanted)
        return dict(zip(self.shapes, made.values(), strict=True))


def _cheapest(
    parts: Sequence[_Part], sizes: dict[str, int], shapes: dict[str, tuple[int, ...]], precision: str
) -> Recorded:
    """All outputs as nodes of one graph, by the choice of origins (see ``kernels.cheapest``) that needs less."""
    from linkwise.compiler.ir.program import record

    def recorded(slide: bool) -> Recorded:
        def all_outputs(**given: Any) -> dict[str, Any]:
            return {
                name: value for part in parts for name, value in part.outputs(slide, precision, given).items()
            }

        return record(all_outputs, sizes, shapes, name="combined")

    return cheapest_recorded((True, False), recorded)[1]
