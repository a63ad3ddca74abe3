"""C with acados' generic interface for discrete dynamics: one Runge–Kutta step of a robot, with its Jacobian.

The state is (q, q̇), the control is τ. acados calls ``NAME(in, out, params)`` for the step and ``NAME_jac`` for the step
with (∂x⁺/∂u, ∂x⁺/∂x)ᵀ. Forward dynamics and its derivatives are straight-line code; the step around them is loops.
"""

from __future__ import annotations

from linkwise.arguments.numbers import Numbers
from linkwise.compiler.emit import c
from linkwise.compiler.emit.external import check_straight
from linkwise.compiler.emit.sx import casadi_name
from linkwise.compiler.ir.program import Program
from linkwise.errors import LinkwiseError

_TEXT = """\
#include "acados/utils/external_function_generic.h"
#include "blasfeo_d_aux.h"

enum {{ {name}_n = {n}, {name}_nx = {nx}, {name}_nu = {n} }};

/* One step of the classical Runge-Kutta method of {step} s; slopes: d next / d (u, x), may be NULL. */
static void {name}_step(const double *x, const double *u, double *next, double (*slopes)[{both}])
{{
    static const double weights[4] = {{ 1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0 }};
    static const double places[4] = {{ 0.0, 0.5, 0.5, 1.0 }};
    const double step = {step};
    double at[{nx}], rate[{nx}] = {{ 0.0 }}, qdd[{n}], dq[{square}], dqd[{square}], dtau[{square}];
    static const double zero = 0.0;
    double by[{nx}][{both}], rates[{nx}][{both}];
    int i, j, k, stage;
    for (i = 0; i < {nx}; ++i) {{
        next[i] = x[i];
        for (j = 0; slopes && j < {both}; ++j) {{
            slopes[i][j] = j == {n} + i ? 1.0 : zero;
            rates[i][j] = zero;
        }}
    }}
    for (stage = 0; stage < 4; ++stage) {{
        for (i = 0; i < {nx}; ++i) {{
            at[i] = x[i] + places[stage] * step * rate[i];
            for (j = 0; slopes && j < {both}; ++j)
                by[i][j] = (j == {n} + i ? 1.0 : zero) + places[stage] * step * rates[i][j];
        }}
        {name}_accelerations(at, at + {n}, u, qdd);
        for (i = 0; i < {n}; ++i) {{
            rate[i] = at[{n} + i];
            rate[{n} + i] = qdd[i];
        }}
        if (slopes) {{
            {name}_derivatives(at, at + {n}, u, dq, dqd, dtau);
            for (i = 0; i < {n}; ++i)
                for (j = 0; j < {both}; ++j) {{
                    double sum = j < {n} ? dtau[i * {n} + j] : zero;
                    for (k = 0; k < {n}; ++k)
                        sum += dq[i * {n} + k] * by[k][j] + dqd[i * {n} + k] * by[{n} + k][j];
                    rates[i][j] = by[{n} + i][j];
                    rates[{n} + i][j] = sum;
                }}
        }}
        for (i = 0; i < {nx}; ++i) {{
            next[i] += weights[stage] * step * rate[i];
            for (j = 0; slopes && j < {both}; ++j)
                slopes[i][j] += weights[stage] * step * rates[i][j];
        }}
    }}
}}

static void {name}_read(void *argument, int size, double *values)
{{
    struct blasfeo_dvec_args *given = argument;
    int i;
    for (i = 0; i < size; ++i)
        values[i] = BLASFEO_DVECEL(given->x, given->xi + i);
}}

static void {name}_write(void *argument, int size, const double *values)
{{
    struct blasfeo_dvec_args *taken = argument;
    int i;
    for (i = 0; i < size; ++i)
        BLASFEO_DVECEL(taken->x, taken->xi + i) = values[i];
}}

/* in: x, u; out: the next x. */
int {name}(void **in, void **out, void *params)
{{
    double x[{nx}], u[{n}], next[{nx}];
    (void)params;
    {name}_read(in[0], {nx}, x);
    {name}_read(in[1], {n}, u);
    {name}_step(x, u, next, 0);
    {name}_write(out[0], {nx}, next);
    return 0;
}}

/* in: x, u; out: the next x, its derivatives by u and x, transposed: ({both}, {nx}). */
int {name}_jac(void **in, void **out, void *params)
{{
    double x[{nx}], u[{n}], next[{nx}], slopes[{nx}][{both}];
    struct blasfeo_dmat_args *taken = out[1];
    int i, j;
    (void)params;
    {name}_read(in[0], {nx}, x);
    {name}_read(in[1], {n}, u);
    {name}_step(x, u, next, slopes);
    {name}_write(out[0], {nx}, next);
    for (i = 0; i < {nx}; ++i)
        for (j = 0; j < {both}; ++j)
            BLASFEO_DMATEL(taken->A, taken->ai + j, taken->aj + i) = slopes[i][j];
    return 0;
}}
"""


def source(
    program: Program,
    *,
    step: float = 0.01,
    function_name: str | None = None,
    description: str = "",
    fma: bool = True,
    jacobian: Program | None = None,
) -> str:
    """Discrete dynamics as a C file for acados.

    The file is acados' ``dyn_generic_source``; ``dyn_disc_fun`` is NAME and ``dyn_disc_fun_jac`` is NAME_jac.

    Args:
        program: forward dynamics of a robot whose joints have one coordinate each.
        step: length of the step [s].
        function_name: NAME.
        description: a line of the comment.
        fma: False for processors without fused multiply-adds.
        jacobian: derivatives of forward dynamics by q, q̇ and τ.
    """
    check_straight(program, "acados")
    if jacobian is None or [key for key, _ in program.inputs] != ["q", "qd", "tau"]:
        raise LinkwiseError(
            "target acados: expected forward_dynamics of a robot whose joints have one coordinate each, without wrench"
        )
    Numbers().time("step", step)
    name, n = casadi_name(function_name or program.name), program.inputs[1][1]
    parts = [
        c.source(each, function_name=f"{name}_{word}", description=description, fma=fma).replace(
            f"\nvoid {name}_{word}(", f"\nstatic void {name}_{word}("
        )
        for each, word in ((program, "accelerations"), (jacobian, "derivatives"))
    ]
    sizes = {"n": n, "nx": 2 * n, "both": 3 * n, "square": n * n}
    return "\n".join((*parts, _TEXT.format(name=name, step=repr(float(step)), **sizes)))
