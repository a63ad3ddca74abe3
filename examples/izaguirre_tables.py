"""The tables of Izaguirre et al. (1992), section 7, for an example that prints them beside its own.

Parameters of link k are called m x y z a b c d e f and its number: mass, first moments, Ixx Iyy Izz Ixy Iyz Ixz in its
Denavit-Hartenberg frame; ia, fs and ds are rotor inertia, Coulomb and viscous friction. The paper prints e5 twice; the
first is c5. Numbers are as printed.
"""

import re

LETTERS = {"m": "m", "x": "hx", "y": "hy", "z": "hz", "a": "Ixx", "b": "Iyy", "c": "Izz"}
LETTERS |= {"d": "Ixy", "e": "Iyz", "f": "Ixz"}
JOINT_TERMS = {"ia": "rotor_inertia", "fs": "coulomb_friction", "ds": "viscous_friction"}


def _table(text: str) -> dict[str, tuple[float, ...]]:
    """Names, each with the numbers after it."""
    found = re.findall(r"([a-z]+\d)((?:\s+-?[\d.]+)+)", text)
    return {name: tuple(float(number) for number in numbers.split()) for name, numbers in found}


TABLE_1 = _table("""
ia1 0.098889 0.050155  ia2 0.1436638 0.086779  ia3 0.048211 0.054446  ia4 0.003262 0.012358
ia5 0.012713 0.018743  ia6 0.002808 0.002849  m6 2.721895 1.119838  x6 -0.0012975 0.002621
y6 -0.000464 0.002  z6 0.012975 0.009833  a6 0.0034 0.006396  b6 -0.001549 0.005895
c6 0.000513 0.001691  d6 -0.000107 0.001391  e6 0.000655 0.001307  f6 -0.000123 0.000831
x5 0.005288 0.012684  y5 0.0067 0.014106  a5 -0.000094 0.008077  c5 -0.003878 0.016054
d5 0.000206 0.004036  e5 0.000139 0.002689  f5 0.002137 0.005822  x4 0.004657 0.018356
y4 -0.344338 0.229325  a4 0.086604 0.092222  c4 0.078255 0.0818  d4 0.006251 0.011871
e4 -0.00038 0.004918  f4 0.000146 0.001974  x3 0.01586 0.077495  y3 0.068128 0.182303
a3 -0.055563 0.09324  d3 0.004356 0.020517  e3 0.004208 0.027816  f3 0.005254 0.021493
x2 0.01425 0.235012  y2 -0.007559 0.040522  d2 -0.017301 0.049358  e2 -0.015461 0.026013
fs1 0.69033 0.074645  fs2 1.3794 0.229495  fs3 0.600034 0.127999  fs4 0.221244 0.038097
fs5 0.039534 0.037993  fs6 0.097322 0.027456  ds1 0.640149 0.142105  ds2 1.054428 0.292792
ds3 0.419111 0.177024  ds4 0.087686 0.002107  ds5 0.099686 0.070966  ds6 0.033299 0.012595
""")
"""Average and standard deviation over ten runs of the 52 independent parameters."""

TABLE_2 = _table("""
ia1 0.091631 0.015729  ia2 0.136312 0.037337  ia3 0.030843 0.022379  ia4 0.001781 0.005213
ia5 0.006759 0.012284  ia6 0.001262 0.002065  m6 2.768114 0.139741  z6 0.014041 0.00698
y4 -0.38219 0.025796  a4 0.079781 0.022904  c4 0.077761 0.02145  fs1 0.787033 0.048752
fs2 1.38928 0.221132  fs3 0.650706 0.045556  fs4 0.256854 0.03152  fs5 0.036607 0.04119
fs6 0.106594 0.020605  ds1 0.575662 0.057868  ds2 0.94467 0.199482  ds3 0.417502 0.103817
ds4 0.066791 0.033318  ds5 0.101721 0.030324  ds6 0.030363 0.011697
""")
"""The same of the 23 significant ones, fitted again alone."""

TABLE_3 = _table("""
fs1 0.76  fs2 1.62  fs3 0.85  fs4 0.175  fs5 0.178  fs6 0.14
ds1 0.71  ds2 0.55  ds3 0.5  ds4 0.05  ds5 0.03  ds6 0.065
""")
"""Friction of the same robot as J. Lloyd measured it (1984)."""

CONDITION = (828.8 / 0.033, 146.0 / 0.35)
"""Condition numbers of the observation matrix with 52 and with 23 parameters."""

GRAVITY = {"c12": (5.509, 5.51792), "c13": (-1.1762, -1.176644), "c15": (-0.192, -0.13743)}
"""Coefficients of the gravity torques [N·m] by Lloyd and by the paper. With its own m6 and y4, c13 is −1.769."""


def label(name: str) -> str:
    """The label in Linkwise of a parameter of the paper: x4 -> link4.hx, ia2 -> joint2.rotor_inertia."""
    if name[:-1] in JOINT_TERMS:
        return f"joint{name[-1]}.{JOINT_TERMS[name[:-1]]}"
    return f"link{name[-1]}.{LETTERS[name[:-1]]}"


def print_beside(ours_1: dict[str, tuple[float, float]], ours_2: dict[str, tuple[float, float]]) -> None:
    """His three tables beside ours: averages and standard deviations over ten runs by name."""
    print("\n      Table 1: his          ours                  Table 2: his          ours")
    for name in TABLE_1:
        cells = [
            f"{table[name][0]:10.4f} ±{table[name][1]:7.4f}" if name in table else " " * 19
            for table in (TABLE_1, ours_1, TABLE_2, ours_2)
        ]
        print(f"{name:<4}{cells[0]}{cells[1]}   {cells[2]}   {cells[3]}".rstrip())
    print("\nTable 3: friction   Lloyd    his   ours")
    for name, (lloyd,) in TABLE_3.items():
        print(f"{name:<17}{lloyd:8.3f}{TABLE_2[name][0]:7.3f}{ours_2[name][0]:7.3f}")


def draw(axes, ours_1: dict[str, tuple[float, float]], ours_2: dict[str, tuple[float, float]]) -> None:
    """Standard deviations over ten runs of the 23, before and after the other parameters were dropped."""
    tables = {"52, paper": TABLE_1, "23, paper": TABLE_2, "52, simulated": ours_1, "23, simulated": ours_2}
    for place, (text, table) in enumerate(tables.items()):
        axes.bar([k + 0.2 * place for k in range(23)], [table[name][1] for name in TABLE_2], 0.2, label=text)
    axes.set(yscale="log", ylabel="standard deviation [SI]")
    axes.set_xticks([k + 0.3 for k in range(23)], list(TABLE_2))
    axes.legend(ncols=4, loc="upper right")
