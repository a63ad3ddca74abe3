"""C with acados' interface: discrete dynamics and their derivatives, without acados or CasADi being there."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.emit.external import column_by_column

HEADERS = """
struct blasfeo_dvec { double *pa; };
struct blasfeo_dmat { double *pA; int m; };
#define BLASFEO_DVECEL(v, i) ((v)->pa[i])
#define BLASFEO_DMATEL(A, i, j) ((A)->pA[(i) + (j) * (A)->m])
"""
ARGUMENTS = """
#include "blasfeo_d_aux.h"
struct blasfeo_dvec_args { struct blasfeo_dvec *x; int xi; };
struct blasfeo_dmat_args { struct blasfeo_dmat *A; int ai; int aj; };
"""


class Vector(ctypes.Structure):
    _fields_ = (("pa", ctypes.c_void_p),)


class Matrix(ctypes.Structure):
    _fields_ = (("pA", ctypes.c_void_p), ("m", ctypes.c_int))


class VectorArgs(ctypes.Structure):
    _fields_ = (("x", ctypes.POINTER(Vector)), ("xi", ctypes.c_int))


class MatrixArgs(ctypes.Structure):
    _fields_ = (("A", ctypes.POINTER(Matrix)), ("ai", ctypes.c_int), ("aj", ctypes.c_int))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_discrete_dynamics_and_their_derivatives(n, tmp_path):
    """The generic interface of acados, compiled with headers that stand in for those of acados and BLASFEO."""
    robot, step = lw.planar_chain(n), 0.02
    rng = np.random.default_rng(n)
    folder = tmp_path / "acados" / "utils"
    folder.mkdir(parents=True)
    (tmp_path / "blasfeo_d_aux.h").write_text(HEADERS)
    (folder / "external_function_generic.h").write_text(
        "#ifndef GUARD\n#define GUARD\n" + ARGUMENTS + "#endif\n"
    )
    text = robot.kernel("forward_dynamics").source("acados", step=step, function_name="chain")
    text = text.replace('#include "blasfeo_d_aux.h"', "")
    path = tmp_path / "dynamics.c"
    path.write_text(text)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{tmp_path}"]
    subprocess.run(["cc", *flags, str(path), "-o", str(tmp_path / "d.so"), "-lm"], check=True)
    library = ctypes.CDLL(str(tmp_path / "d.so"))

    x, u = rng.uniform(-0.6, 0.6, 2 * n), rng.uniform(-2.0, 2.0, n)
    ux, out = np.concatenate([u, x]), np.full(2 * n + 2, np.nan)
    slopes = np.zeros((3 * n + 1, 2 * n + 2), order="F")
    vector, result = Vector(ux.ctypes.data), Vector(out.ctypes.data)
    matrix = Matrix(slopes.ctypes.data, slopes.shape[0])
    arguments = [VectorArgs(ctypes.pointer(vector), n), VectorArgs(ctypes.pointer(vector), 0)]
    results = [VectorArgs(ctypes.pointer(result), 1), MatrixArgs(ctypes.pointer(matrix), 1, 2)]
    pack = lambda items: (ctypes.c_void_p * len(items))(*(ctypes.addressof(item) for item in items))  # noqa: E731

    def rate(x):
        return np.concatenate([x[n:], robot.forward_dynamics(x[:n], x[n:], u)])

    k1 = rate(x)
    k2 = rate(x + step / 2 * k1)
    k3 = rate(x + step / 2 * k2)
    k4 = rate(x + step * k3)
    wanted = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    assert library.chain(pack(arguments), pack(results[:1]), None) == 0
    assert np.allclose(out[1:-1], wanted, rtol=1e-13)
    assert np.isnan(out[[0, -1]]).all()
    assert library.chain_jac(pack(arguments), pack(results), None) == 0
    jacobian = slopes[1:, 2:].T.copy()
    for k in range(3 * n):
        moved = []
        for sign in (1, -1):
            kept = ux[k]
            ux[k] += sign * 1e-6
            library.chain(pack(arguments), pack(results[:1]), None)
            moved.append(out[1:-1].copy())
            ux[k] = kept
        assert np.allclose(jacobian[:, k], (moved[0] - moved[1]) / 2e-6, atol=1e-7)


def test_outputs_of_any_shape_are_columns_of_casadi():
    """Numbers, vectors, matrices and more axes, in CasADi's order: column by column, further axes beside the second."""
    for shape in ((), (1,), (4,), (3, 2), (2, 3, 4), (1, 5)):
        count = int(np.prod(shape, dtype=int))
        rows = np.arange(count).reshape(shape[0] if shape else 1, -1)
        assert column_by_column(shape, list(range(count))) == rows.ravel(order="F").tolist(), shape
