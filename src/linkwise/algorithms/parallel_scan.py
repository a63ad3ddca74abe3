"""Forward dynamics of a chain in logarithmic depth: the Kalman filter and smoother as parallel scans over the links.

Each link, and so each run of neighbouring links, relates what happens at its two ends by an affine map. With the
acceleration λ of the link inside and the force f from the link outside it gives

    λ' = A λ − C f + b    (acceleration of the run's last link)
    f' = Aᵀ f + J λ + η   (force on the link inside, about its origin)

J is the articulated inertia that the inside feels, C the compliance that the outside feels; both are symmetric and not
negative, so that joining two runs (inner 1, outer 2) needs the inverse of I + C₁J₂ alone, which always exists:

    D = (I + C₁J₂)⁻¹    A = A₂DA₁    C = C₂ + A₂DC₁A₂ᵀ    J = J₁ + A₁ᵀJ₂DA₁
    b = b₂ + A₂D(b₁ − C₁η₂)    η = η₁ + A₁ᵀ(J₂Db₁ + Dᵀη₂)

This is the filter's element of S. Särkkä and Á. F. García-Fernández, *Temporal parallelization of Bayesian smoothers*,
2021, with the joint torque as measurement and the rotor inertia as its noise. Joining is associative, so all suffixes
come from one scan: the filter. Angular velocities before it and the smoother after it are scans of affine maps.
Everything is computed in float64, vectorised over links and states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.errors import ModelError, TraceError
from linkwise.model.mechanism import Mechanism

Array = np.ndarray
Element = tuple[Array, ...]  # arrays whose first axis goes over the links


def forward_dynamics(links: Mechanism, q, qd, tau, wrenches=None) -> list[Array]:
    """Joint accelerations for torques from which friction has been taken [rad/s² or m/s²]."""
    if any(hasattr(x, "graph") for x in (*q, *qd, *tau)):
        raise TraceError(
            "parallel_scan is computed on NumPy arrays and cannot be traced into a kernel; use algorithm='kalman'"
        )
    # regrouped inertias may be negative, and then two runs may not fit together
    chain = _chain(links.original)
    q, qd, tau = _stacked(q, qd, tau)
    X, turn, lever = _placements(chain, q)
    w = _angular_velocities(chain, turn, qd)
    n = _bias_accelerations(chain, turn, lever, w, qd)
    force = _bias_forces(chain, w[1:])
    if wrenches is not None:
        force = force - _as_rows(wrenches, q.shape)
    J, η = _filtered(chain, X, n, force, tau)
    return list(_smoothed(chain, X, n, force, tau, J, η))


# -- scans ------------------------------------------------------------------------------------------------------------


def scan(elements: Element, join: Callable[[Element, Element], Element]) -> Element:
    """e₀, e₀∘e₁, e₀∘e₁∘e₂, …: pairs are joined, their scan gives every second result, one more join the rest."""
    count = len(elements[0])
    if count < 2:
        return elements
    pairs = join(tuple(e[0 : count - 1 : 2] for e in elements), tuple(e[1::2] for e in elements))
    odd = scan(pairs, join)
    before = tuple(e[: (count - 1) // 2] for e in odd)
    even = join(before, tuple(e[2::2] for e in elements)) if count > 2 else before
    results = []
    for given, at_odd, at_even in zip(elements, odd, even, strict=True):
        result = np.empty_like(given)
        result[0] = given[0]
        result[1::2] = at_odd
        result[2::2] = at_even
        results.append(result)
    return tuple(results)


def _then(first: Element, second: Element) -> Element:
    """Two affine maps, one after the other."""
    (F, g), (F2, g2) = first, second
    return F2 @ F, _times(F2, g) + g2


def _joined(outer: Element, inner: Element) -> Element:
    """Two runs of links; what comes first in the scan lies outside."""
    A1, C1, J1, b1, η1 = inner
    A2, C2, J2, b2, η2 = outer
    right = np.concatenate([A1, C1, (b1 - _times(C1, η2))[..., None], b1[..., None]], axis=-1)
    solved = np.linalg.solve(np.eye(6) + C1 @ J2, right)
    DA, DC, Db, Db1 = solved[..., :6], solved[..., 6:12], solved[..., 12], solved[..., 13]
    A1T = np.swapaxes(A1, -1, -2)
    back = _times(J2, Db1) + η2 - _times(J2, _times(DC, η2))  # Dᵀ = I − J₂DC₁
    return (
        A2 @ DA,
        C2 + _symmetric(A2 @ DC @ np.swapaxes(A2, -1, -2)),
        J1 + _symmetric(A1T @ J2 @ DA),
        b2 + _times(A2, Db),
        η1 + _times(A1T, back),
    )


# -- the passes -------------------------------------------------------------------------------------------------------


def _angular_velocities(chain: _Chain, turn: Array, qd: Array) -> Array:
    """ω of the base (zero) and of every link, in its own axes."""
    own = np.zeros((*qd.shape, 3))
    own[..., 2] = chain.over(chain.revolute, qd) * qd
    _, w = scan((np.swapaxes(turn, -1, -2).copy(), own), _then)
    return np.concatenate([np.zeros_like(w[:1]), w])


def _bias_accelerations(chain: _Chain, turn: Array, lever: Array, w: Array, qd: Array) -> Array:
    """n̄ as in ``kalman.bias_accelerations``."""
    outward = np.swapaxes(turn, -1, -2)
    above = w[:-1]
    seen = _times(outward, above)
    across = np.stack([seen[..., 1], -seen[..., 0], np.zeros_like(qd)], axis=-1) * qd[..., None]
    revolute = chain.over(chain.revolute, qd)[..., None]
    centripetal = _times(outward, np.cross(above, np.cross(above, lever)))
    return np.concatenate([revolute * across, centripetal + 2.0 * (1.0 - revolute) * across], axis=-1)


def _bias_forces(chain: _Chain, w: Array) -> Array:
    """b̄ of (3.33): [ω × I ω, ω × (ω × h)]."""
    spread = w.ndim - 2
    I = chain.inertia[:, :3, :3].reshape(-1, *(1,) * spread, 3, 3)
    h = chain.first_moment.reshape(-1, *(1,) * spread, 3)
    return np.concatenate([np.cross(w, _times(I, w)), np.cross(w, np.cross(w, h))], axis=-1)


def _filtered(chain: _Chain, X: Array, n: Array, force: Array, tau: Array) -> tuple[Array, Array]:
    """For every link the inertia J and the force η that the links outside it show it."""
    M = chain.spread(chain.inertia, tau)
    D, G, gain = _gains(chain, M, tau)
    h = chain.spread_rows(chain.axis, tau)
    XT = np.swapaxes(X, -1, -2)
    e = tau - _dot(h, force)
    A = G @ XT
    C = np.broadcast_to(h[..., :, None] * h[..., None, :] / D[..., None, None], A.shape)
    b = _times(G, n) + h * (e / D)[..., None]
    MG = _symmetric(M @ G)
    η = _times(X, _times(MG, n) + gain * e[..., None] + force)
    elements = tuple(part[::-1] for part in (A, C, _symmetric(X @ MG @ XT), b, η))
    _, _, J, _, η = scan(elements, _joined)
    outside = [np.concatenate([part[::-1][1:], np.zeros_like(part[:1])]) for part in (J, η)]
    return outside[0], outside[1]


def _smoothed(chain: _Chain, X: Array, n: Array, force: Array, tau: Array, J: Array, η: Array) -> Array:
    """q̈ of every joint, from what all links outside it show it."""
    D, G, gain = _gains(chain, chain.spread(chain.inertia, tau) + J, tau)
    h = chain.spread_rows(chain.axis, tau)
    XT = np.swapaxes(X, -1, -2)
    e = (tau - _dot(h, force + η)) / D
    base = np.broadcast_to(chain.base, n[:1].shape)
    F, g = G @ XT, _times(G, n) + h * e[..., None]
    g[0] += _times(F[0], base[0])
    _, λ = scan((F, g), _then)
    above = np.concatenate([base, λ[:-1]])
    return e - _dot(gain, _times(XT, above) + n)


def _gains(chain: _Chain, P: Array, like: Array) -> tuple[Array, Array, Array]:
    """The axis inertia D, I − hhᵀP/D and the gain Ph/D."""
    h = chain.spread_rows(chain.axis, like)
    column = _times(P, h)
    D = _dot(h, column) + chain.over(chain.rotor, like)
    gain = column / D[..., None]
    return D, np.eye(6) - h[..., :, None] * gain[..., None, :], gain


# -- the links as arrays ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Chain:
    """What is constant, with one row per link."""

    revolute: Array
    slides: Array  # 1 − revolute
    rotor: Array
    offset: Array
    fixed: Array  # Rz(φ)·Rx(α)
    lever: Array
    axis: Array  # H, (n, 6)
    inertia: Array  # (n, 6, 6)
    first_moment: Array
    base: Array  # λ of the base: −g

    def over(self, values: Array, like: Array) -> Array:
        """One number per link beside an array (links, states...)."""
        return values.reshape(-1, *(1,) * (like.ndim - 1))

    def spread_rows(self, values: Array, like: Array) -> Array:
        return values.reshape(-1, *(1,) * (like.ndim - 1), values.shape[-1])

    def spread(self, values: Array, like: Array) -> Array:
        return values.reshape(-1, *(1,) * (like.ndim - 1), *values.shape[-2:])


def applies(links: Mechanism) -> str | None:
    """None where the algorithm can be used, else why not."""
    for link in links:
        if link.parent != link.index - 1:
            return f"the links branch at {link.joint_name}"
        if not link.rotor_inertia > 0.0:
            return f"{link.joint_name} has none"
    return None if len(links) else "this robot has no joints"


def _chain(links: Mechanism) -> _Chain:
    reason = applies(links)
    if reason is not None:
        raise ModelError(
            f"{links.name}: parallel_scan needs a chain with positive rotor inertia at every joint: {reason}"
        )
    known = links.__dict__.get("_scanned")
    if known is None:
        known = links.__dict__["_scanned"] = _made(links)
    return known


def _made(links: Mechanism) -> _Chain:
    count = len(links)
    revolute = np.array([1.0 if link.revolute else 0.0 for link in links])
    axis, inertia = np.zeros((count, 6)), np.zeros((count, 6, 6))
    fixed, first = np.empty((count, 3, 3)), np.empty((count, 3))
    for k, link in enumerate(links):
        φ, α = link.branch, link.twist
        about_z = np.array([[φ.c, -φ.s, 0.0], [φ.s, φ.c, 0.0], [0.0, 0.0, 1.0]])
        about_x = np.array([[1.0, 0.0, 0.0], [0.0, α.c, -α.s], [0.0, α.s, α.c]])
        fixed[k] = about_z @ about_x
        axis[k, 2 if link.revolute else 5] = 1.0
        m, h, I = link.inertia
        first[k] = h.x, h.y, h.z
        inertia[k, :3, :3] = [[I.xx, I.xy, I.xz], [I.xy, I.yy, I.yz], [I.xz, I.yz, I.zz]]
        inertia[k, :3, 3:] = _skew(first[k])
        inertia[k, 3:, :3] = -inertia[k, :3, 3:]
        inertia[k, 3:, 3:] = m * np.eye(3)
    g = links.gravity
    return _Chain(
        revolute,
        1.0 - revolute,
        np.array([link.rotor_inertia for link in links]),
        np.array([link.offset.angle for link in links]),
        fixed,
        np.array([[link.lever.x, link.lever.y, link.lever.z] for link in links]),
        axis,
        inertia,
        first,
        np.array([0.0, 0.0, 0.0, -g.x, -g.y, -g.z]),
    )


def _placements(chain: _Chain, q: Array) -> tuple[Array, Array, Array]:
    """φA of every link (6×6), its turn against the parent (3×3) and the lever, in the parent's axes."""
    angle = chain.over(chain.revolute, q) * q + chain.over(chain.offset, q)
    c, s = np.cos(angle), np.sin(angle)
    turned = np.zeros((*q.shape, 3, 3))
    turned[..., 0, 0], turned[..., 0, 1] = c, -s
    turned[..., 1, 0], turned[..., 1, 1] = s, c
    turned[..., 2, 2] = 1.0
    fixed = chain.spread(chain.fixed, q)
    turn = fixed @ turned
    slide = (chain.over(chain.slides, q) * q)[..., None]
    lever = chain.spread_rows(chain.lever, q) + slide * fixed[..., :, 2]
    X = np.zeros((*q.shape, 6, 6))
    X[..., :3, :3] = X[..., 3:, 3:] = turn
    X[..., :3, 3:] = _skew(lever) @ turn
    return X, turn, lever


def _stacked(*inputs: Sequence[Array]) -> list[Array]:
    """(links, states...) of each, in one shape."""
    made = [np.stack(np.broadcast_arrays(*each)).astype(float) for each in inputs]
    depth = max(a.ndim for a in made)
    made = [a.reshape(len(a), *(1,) * (depth - a.ndim), *a.shape[1:]) for a in made]
    return [np.array(a) for a in np.broadcast_arrays(*made)]


def _as_rows(loads, shape: tuple[int, ...]) -> Array:
    """Spatial forces of the links as (links, states..., 6)."""
    rows = np.zeros((*shape, 6))
    for k, load in enumerate(loads):
        for j, x in enumerate((*load.angular, *load.linear)):
            rows[k, ..., j] = x
    return rows


def _skew(v: Array) -> Array:
    """The matrix of v × (·)."""
    zero = np.zeros_like(v[..., 0])
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    return np.stack(
        [np.stack([zero, -z, y], -1), np.stack([z, zero, -x], -1), np.stack([-y, x, zero], -1)], axis=-2
    )


def _symmetric(S: Array) -> Array:
    return 0.5 * (S + np.swapaxes(S, -1, -2))


def _times(matrix: Array, vector: Array) -> Array:
    return (matrix @ vector[..., None])[..., 0]


def _dot(a: Array, b: Array) -> Array:
    return (a * b).sum(-1)
