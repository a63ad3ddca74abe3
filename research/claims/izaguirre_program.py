"""The C program printed in Izaguirre et al. 1992, Appendix A, as Python, line by line.

Letters that the scan lost are restored (S for $, Q for 0); nothing else is changed. ``correction`` adds what the
listing leaves out where it carries the products of inertia of compound link 4 into frame 3, against the paper's own
equation (17).
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from math import cos, sin

M6, Z6, Y4, AD4, CD4 = 2.768114, 0.01401, -0.38219, 0.079781, 0.077761
IA1, IA2, IA3, IA4, IA5, IA6 = 0.091631, 0.136312, 0.030843, 0.001781, 0.006759, 0.001262
A2, D3, D4 = 0.2032, 0.12624, 0.2032
KP21, KP32, KP42 = A2, -D3, D4
FP42, FP32, FP21 = KP42 * M6, KP32 * M6, KP21 * M6
NP411 = NP433 = M6 * (KP42 * KP42)
NP311 = NP333 = M6 * (KP32 * KP32)
NP222 = NP233 = M6 * (KP21 * KP21)
GRAV = 9.81


def dyn_robot(Q, correction=0.0):
    """(D_ij, upper triangle by (i, j); D_i by i) for joint angles Q[1] … Q[6]; ``correction`` 1: with J413 and J423."""
    S2, C2 = sin(Q[2]), cos(Q[2])
    S3, C3 = sin(Q[3]), cos(Q[3])
    S4, C4 = sin(Q[4]), cos(Q[4])
    S5, C5 = sin(Q[5]), cos(Q[5])
    S23, C23 = sin(Q[2] + Q[3]), cos(Q[2] + Q[3])
    C4C4 = C4 * C4
    S4S4 = S4 * S4
    S4C4 = S4 * C4
    C3C3 = C3 * C3
    S3S3 = S3 * S3
    S3C3 = S3 * C3
    C2C2 = C2 * C2
    S2C2 = S2 * C2
    S2S2 = S2 * S2
    T1214 = C2 * A2
    T1224 = S2 * A2
    T1411 = C23 * C4
    T1414 = -(S23 * D4) + T1214
    T1424 = (C23 * D4) + T1224
    T1421 = S23 * C4
    BS63 = Z6
    BS51 = -(S5 * BS63)
    BS52 = C5 * BS63
    BA52 = (Y4 + BS52) + FP42
    BS41 = C4 * BS51
    BS42 = S4 * BS51
    BS43 = BA52
    BA42 = BS42 + FP32
    BS32 = (S3 * BS41) + (C3 * BS43)
    BS31 = (C3 * BS41) - (S3 * BS43)
    BS33 = -BA42
    BA31 = BS31 + FP21
    BS22 = (S2 * BA31) + (C2 * BS32)
    BS23 = BS33
    BS21 = (C2 * BA31) - (S2 * BS32)
    JA533 = CD4 - NP433
    JA511 = AD4 - NP411
    JS423 = 0 - (D4 * BS42)
    JS422 = (S4S4 * JA511) + (C4C4 * JA533) + (2.0 * (D4 * BS43))
    JS413 = 0 - (D4 * BS41)
    JS412 = S4C4 * (JA511 - JA533)
    JS411 = (C4C4 * JA511) + (S4S4 * JA533) + (2.0 * (D4 * BS43))
    JA433 = -NP333
    JA411 = JS411 - NP311
    JS333 = JS422
    JS323 = -(S3 * JS412) - (D3 * BS32)
    JS313 = -(C3 * JS412) - (D3 * BS31)
    JS322 = (S3S3 * JA411) + (C3C3 * JA433) + (2.0 * (D3 * BS33))
    JS312 = S3C3 * (JA411 - JA433)
    JS311 = (C3C3 * JA411) + (S3S3 * JA433) + (2.0 * (D3 * BS33))
    if correction:
        JS323 = JS323 - correction * (C3 * JS423)
        JS313 = JS313 + correction * (S3 * JS423)
        JS322 = JS322 + correction * (2.0 * (S3C3 * JS413))
        JS312 = JS312 + correction * ((C3C3 - S3S3) * JS413)
        JS311 = JS311 - correction * (2.0 * (S3C3 * JS413))
    JA333 = JS333 - NP233
    JA322 = JS322 - NP222
    JS233 = JA333 + (2.0 * ((T1224 * BS22) + (T1214 * BS21)))
    JS223 = (S2 * JS313) + (C2 * JS323) - (T1224 * BS23)
    JS222 = (S2S2 * JS311) + ((2 * S2C2) * JS312) + (C2C2 * JA322) + (2.0 * (T1214 * BS21))
    PS031 = C23 * D3
    PS041 = (T1411 * D3) + (S4 * T1414)
    PS042 = -(S23 * D3)
    PS131 = -(C23 * T1224) + (S23 * T1214)
    PS141 = -(T1411 * T1424) + (T1421 * T1414)
    PS142 = (S23 * T1424) + (C23 * T1414)
    PS241 = -(C4 * D4)
    DIJ = {
        (1, 1): JS222 + IA1,
        (1, 2): JS223,
        (1, 3): (S2 * JS313) + (C2 * JS323),
        (1, 4): (S23 * JS413) - (BS42 * PS031) + (BS41 * T1214),
        (1, 5): -(BS52 * PS041) + (BS51 * PS042),
        (2, 2): JS233 + IA2,
        (2, 3): JS422 + (BS31 * A2),
        (2, 4): -JS423 - (BS42 * PS131),
        (2, 5): -(BS52 * PS141) + (BS51 * PS142),
        (3, 3): JS422 + IA3,
        (3, 4): -JS423,
        (3, 5): -(BS52 * PS241),
        (4, 4): IA4,
        (5, 5): IA5,
        (6, 6): IA6,
    }
    DI = {
        2: GRAV * BS21,
        3: GRAV * (-(BS32 * S2) + (BS31 * C2)),
        4: GRAV * (-(BS42 * S23)),
        5: GRAV * (-(BS52 * T1421) + (BS51 * C23)),
    }
    return DIJ, DI


def operations() -> tuple[int, int]:
    """(multiplications, additions) of the listing as printed: constants and changes of sign are not counted."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(dyn_robot)))
    branch = next(node for node in ast.walk(tree) if isinstance(node, ast.If))
    skipped = {id(node) for part in branch.body for node in ast.walk(part)}
    kinds = [node.op for node in ast.walk(tree) if isinstance(node, ast.BinOp) and id(node) not in skipped]
    constant = 2  # JA533 and JA511 are differences of constants
    zero = 2  # 0 − x, in JS423 and JS413, is a change of sign
    arguments = 2  # Q[2] + Q[3], twice, which the paper counts with the sines and cosines
    products = sum(isinstance(kind, ast.Mult) for kind in kinds)
    return products, len(kinds) - products - constant - zero - arguments
