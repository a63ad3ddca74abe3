"""What works inside which transformation, found by running it: every cell is a call whose result is compared."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import linkwise as lw

YES, NO = "yes", "no"
STEP, CLOSE = 1e-6, 1e-5  # of central differences; of derivatives, relative to the largest
LONG = 120  # links of a chain that is compiled as loops

Function = Callable[..., Any]


@functools.cache
def calls() -> dict[str, tuple[Function, list[np.ndarray]]]:
    """Kinds of calls by their heading: a function of three arrays and one state for it."""
    arm, chain = lw.load("two_link"), lw.planar_chain(LONG)
    tool = arm.link_names[-1]
    held = arm.with_constraints([lw.Point(tool, tuple(arm.pose(np.array([0.3, -0.4]), tool)[:3, 3]))])
    loaded = arm.kernel("inverse_dynamics", inputs=("payload",))
    payload = np.array([1.0, 0, 0, 0.1, 0.01, 0, 0, 0.01, 0, 0.01])

    @lw.kernel(q=2, qd=2, third=2)
    def own(q, qd, third):
        return arm.inverse_dynamics(q, qd, third) * lw.sin(q)

    rng = np.random.default_rng(0)
    small, long = list(rng.normal(size=(3, 2))), list(0.1 * rng.normal(size=(3, LONG)))
    at_rest = [held.meet_constraints(np.array([0.3, -0.4])), np.zeros(2), small[2]]

    def with_payload(q: Any, qd: Any, third: Any) -> Any:
        same = payload if isinstance(q, np.ndarray) else _like(q, payload)
        return loaded(q, qd, third, same)

    def iterated(q: Any, qd: Any, third: Any) -> Any:
        return arm.forward_dynamics(q, qd, third, algorithm="conjugate_gradient")

    return {
        "methods": (arm.forward_dynamics, small),
        "parameters as inputs": (with_payload, small),
        "own functions": (own, small),
        "constraints": (held.forward_dynamics, at_rest),
        "iterations": (iterated, small),
        "loops over links": (chain.inverse_dynamics, long),
    }


def _like(value: Any, array: np.ndarray) -> Any:
    if type(value).__module__.startswith("torch"):
        import torch

        return torch.tensor(array)
    import jax.numpy as jnp

    return jnp.asarray(array)


def rows(transformations: dict[str, Function]) -> list[tuple[str, list[str]]]:
    """For each transformation whether each kind of call gives the right result in it."""
    return [
        (name, [_cell(test, *call) for call in calls().values()]) for name, test in transformations.items()
    ]


def _cell(test: Function, function: Function, state: list[np.ndarray]) -> str:
    try:
        found, wanted = test(function, state)
    except lw.LinkwiseError:
        return NO
    scale = max(float(np.abs(wanted).max()), 1.0)
    if not np.allclose(np.asarray(found), wanted, rtol=0, atol=CLOSE * scale):
        raise AssertionError(f"a transformation gives {found}, expected {wanted}")
    return YES


def markdown(framework: str, found: list[tuple[str, list[str]]]) -> str:
    """A row for the transformations that work with the same calls."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, cells in found:
        alike.setdefault(tuple(cells), []).append(name)
    lines = [f"| {framework} | with | not with |", "| --- | --- | --- |"]
    for cells, names in alike.items():
        sides = (
            ", ".join(call for call, cell in zip(calls(), cells, strict=True) if cell == side)
            for side in (YES, NO)
        )
        lines.append(f"| {', '.join(names)} | {' | '.join(sides)} |")
    return "\n".join(lines)


# -- references -------------------------------------------------------------------------------------------------------


def gradient(function: Function, state: list[np.ndarray]) -> np.ndarray:
    """Of the sum of squares by the first input, by central differences."""
    q, *rest = state
    size = lambda q: float((function(q, *rest) ** 2).sum())  # noqa: E731
    return np.array([(size(q + STEP * e) - size(q - STEP * e)) / (2 * STEP) for e in np.eye(len(q))])


def jacobian(function: Function, state: list[np.ndarray]) -> np.ndarray:
    q, *rest = state
    return np.stack(
        [
            (function(q + STEP * e, *rest) - function(q - STEP * e, *rest)) / (2 * STEP)
            for e in np.eye(len(q))
        ],
        axis=-1,
    )


def batch(state: list[np.ndarray]) -> list[np.ndarray]:
    return [np.stack([a, 1.1 * a, 0.9 * a]) for a in state]


# -- JAX --------------------------------------------------------------------------------------------------------------


def jax_transformations() -> dict[str, Function]:
    import jax

    jax.config.update("jax_enable_x64", True)
    squares = lambda f, x: lambda q: (f(q, *x[1:]) ** 2).sum()  # noqa: E731
    first = lambda f, x: lambda q: f(q, *x[1:])  # noqa: E731

    def hessian(f: Function, x: list[np.ndarray]) -> Any:
        found = jax.jit(jax.hessian(squares(f, x)))(x[0])
        other = jax.jit(jax.jacrev(jax.jacrev(squares(f, x))))(x[0])
        return found, np.asarray(other)

    def scan(f: Function, x: list[np.ndarray]) -> Any:
        step = lambda q, _: (x[0] + 1e-6 * f(q, *x[1:]), None)  # noqa: E731
        found = jax.jit(lambda q: jax.lax.scan(step, q, None, length=3)[0])(x[0])
        q = x[0]
        for _ in range(3):
            q = x[0] + 1e-6 * f(q, *x[1:])
        return found, q

    def shard_map(f: Function, x: list[np.ndarray]) -> Any:
        mesh = jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
        specs = jax.sharding.PartitionSpec("rows")
        many = batch(x)
        return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=(specs,) * 3, out_specs=specs))(*many), f(*many)

    def exported(f: Function, x: list[np.ndarray]) -> Any:
        import jax.export

        from linkwise.frameworks.jax import export_checks

        function = jax.jit(lambda *x: f(*x))
        checks = export_checks(function, *x)
        return jax.export.export(function, disabled_checks=checks)(*x).call(*x), f(*x)

    return {
        "`jit`": lambda f, x: (jax.jit(f)(*x), f(*x)),
        "`vmap`": lambda f, x: (jax.vmap(f)(*map(jax.numpy.asarray, batch(x))), f(*batch(x))),
        "`vmap` of `vmap`": lambda f, x: (
            jax.jit(jax.vmap(jax.vmap(f, (0, None, None)), (None, 0, None)))(*batch(x)[:2], x[2]),
            f(batch(x)[0][None], batch(x)[1][:, None], x[2]),
        ),
        "`grad`": lambda f, x: (jax.grad(squares(f, x))(x[0]), gradient(f, x)),
        "`jvp`": lambda f, x: (
            jax.jvp(first(f, x), (x[0],), (np.ones_like(x[0]),))[1],
            jacobian(f, x).sum(-1),
        ),
        "`jacfwd`": lambda f, x: (jax.jit(jax.jacfwd(first(f, x)))(x[0]), jacobian(f, x)),
        "`jacrev`": lambda f, x: (jax.jit(jax.jacrev(first(f, x)))(x[0]), jacobian(f, x)),
        "`hessian`": hessian,
        "`scan`": scan,
        "`shard_map`": shard_map,
        "ahead of time": lambda f, x: (jax.jit(lambda *x: f(*x)).lower(*x).compile()(*x), f(*x)),
        "`jax.export`": exported,
    }


# -- PyTorch ----------------------------------------------------------------------------------------------------------


def torch_transformations() -> dict[str, Function]:
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    func = torch.func
    tensors = lambda arrays: [torch.tensor(a) for a in arrays]  # noqa: E731

    def squares(f: Function, x: list[np.ndarray]) -> Function:
        rest = tensors(x[1:])
        return lambda q: (f(q, *rest) ** 2).sum()

    def first(f: Function, x: list[np.ndarray]) -> Function:
        rest = tensors(x[1:])
        return lambda q: f(q, *rest)

    def backward(f: Function, x: list[np.ndarray]) -> Any:
        q = torch.tensor(x[0], requires_grad=True)
        squares(f, x)(q).backward()
        return q.grad, gradient(f, x)

    def twice(f: Function, x: list[np.ndarray]) -> Any:
        found = torch.autograd.functional.hessian(squares(f, x), torch.tensor(x[0]))
        return found, func.hessian(squares(f, x))(torch.tensor(x[0])).numpy()

    def compiled(f: Function, x: list[np.ndarray]) -> Any:
        torch._dynamo.reset()
        function = torch.compile(lambda *x: f(*x), fullgraph=True, dynamic=True, backend="aot_eager")
        return function(*tensors(batch(x))), f(*batch(x))

    def exported(f: Function, x: list[np.ndarray]) -> Any:
        class Module(torch.nn.Module):
            def forward(self, q: Any, qd: Any, third: Any) -> Any:
                return f(q, qd, third)

        given = tuple(tensors(batch(x)))
        return torch.export.export(Module(), given).module()(*given), f(*batch(x))

    return {
        "`backward`": backward,
        "double backward": twice,
        "`torch.func.vmap`": lambda f, x: (torch.vmap(f)(*tensors(batch(x))), f(*batch(x))),
        "`torch.func.grad`": lambda f, x: (func.grad(squares(f, x))(torch.tensor(x[0])), gradient(f, x)),
        "`torch.func.jacrev`": lambda f, x: (func.jacrev(first(f, x))(torch.tensor(x[0])), jacobian(f, x)),
        "`torch.func.jacfwd`": lambda f, x: (func.jacfwd(first(f, x))(torch.tensor(x[0])), jacobian(f, x)),
        "`torch.func.hessian`": lambda f, x: twice(f, x)[::-1],
        "`torch.compile(fullgraph=True, dynamic=True)`": compiled,
        "`torch.export`": exported,
    }


def tables() -> str:
    """Both tables, as ``docs/frameworks.md`` has them."""
    return "\n\n".join(
        markdown(name, rows(transformations()))
        for name, transformations in (("JAX", jax_transformations), ("PyTorch", torch_transformations))
    )
