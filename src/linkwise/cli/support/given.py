"""Options that were typed, as opposed to those that have their default: one that would be ignored is refused."""

from __future__ import annotations

from collections.abc import Iterable

import click


def is_given(name: str) -> bool:
    """Whether an option or an argument of the present command was typed.

    Args:
        name: of the parameter in Python, such as ``no_friction``.
    """
    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, click.core.ParameterSource.DEFAULT, click.core.ParameterSource.DEFAULT_MAP)


def refuse_given(names: Iterable[str], reason: str) -> None:
    """Raise if one of these was typed, where it would have no effect.

    Args:
        names: of the parameters in Python.
        reason: the rest of the message, such as "does not go with --compare".
    """
    parameters = {each.name: each for each in click.get_current_context().command.params}
    for name in names:
        if is_given(name):
            parameter = parameters[name]
            shown = (
                parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
            )
            raise click.UsageError(f"{shown} {reason}")
