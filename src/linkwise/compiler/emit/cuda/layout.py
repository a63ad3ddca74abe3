"""How a kernel's work is laid out on a multiprocessor, and the rule that chooses it; docs/gpu.md has the measurements.

A multiprocessor has four schedulers with a quarter of the registers each, so what counts is how many warps fit on one
scheduler: 128 registers allow four, 136 only three. Registers are therefore asked for in those steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from linkwise.compiler.ir.program import Program, alive

WARP = 32
SCHEDULERS = 4
_REGISTERS = 512  # that a scheduler has for each lane of its warps
_MOST_REGISTERS = 255  # of a thread
_SHARED_PER_SM = 227 << 10  # bytes that blocks can use on compute capability 9.0
_SHARED_OF_BLOCK = 1 << 10  # of each block, the system's
_MOST_WARPS = 12  # per scheduler; more never helped
_SPILLING = 400  # registers from which spills cost more than it saves to fetch inputs ahead
_LONG = 8192  # instructions of 16 bytes: more than a multiprocessor keeps
IN_STEP = 2 * SCHEDULERS  # warps of a block that fetch the same code
SHARED_IN_STEP = 120 << 10
"""Bytes up to which such a block keeps rows there that could stay in global memory: what is left is the cache of values
for which registers have no room."""
MOST_SHARED = _SHARED_PER_SM - _SHARED_OF_BLOCK  # bytes of a block


@dataclass(frozen=True)
class WarpLayout:
    """How the work is laid out on a multiprocessor."""

    warps: int
    """Warps of a block; 0: as many as shared memory holds."""
    resident: int
    """Blocks that a multiprocessor must be able to hold at once: this bounds the registers of a thread."""
    staged: tuple[bool, ...]
    """For each output, whether it leaves through shared memory."""
    persistent: bool = False
    """Whether warps stay and fetch the inputs of their next states while they compute."""
    parts: int = 1
    """Warps that compute the same 32 states together, each a part of the program; others have other states."""
    held: int = 0
    """Values that each of them keeps in registers from one stage to the next; see ``parts``."""
    in_step: bool = False
    """Whether all warps of a block, not those of the same states alone, wait for each other between stages; in
    rollouts, between steps."""
    queued: bool = False
    """Whether a thread whose state has left the loop takes the next one; see ``queued``."""

    @property
    def threads(self) -> int:
        return self.warps * WARP


def item_size(dtype: str) -> int:
    return 8 if dtype == "float64" else 4


def pitch(size: int) -> int:
    """The distance of two rows in shared memory, in scalars: odd, so that no two lanes access the same bank."""
    return size | 1


def candidates(program: Program) -> list[WarpLayout]:
    """Layouts to try; outputs leave through shared memory as far as that has room for two warps, a single one for one.

    Lanes that write rows of their own directly use an eighth of every transfer: the mass matrix of a quadruped in
    float64 is 13 times as fast with two warps on a multiprocessor that write through shared memory, and the regressor
    of the Panda 10 times with one. With several outputs a second warp is worth more than the last of them.
    """
    item = item_size(program.dtype)
    inputs = WARP * item * sum(pitch(size) for _, size in program.inputs)
    room = _SHARED_PER_SM // min(2, len(program.outputs)) - _SHARED_OF_BLOCK
    staged: list[bool] = []
    used = inputs
    for _, shape in program.outputs:
        size = math.prod(shape)
        need = WARP * item * pitch(size)
        staged.append(size > 1 and used + need <= room)
        used += need if staged[-1] else 0
    found = bold_and_safe(program, 0.8, used, inputs, tuple(staged))
    # into a cache of which memory for the next inputs takes a part
    spills = alive(program) * item // 4 > _SPILLING
    found = [replace(each, persistent=each.persistent and not spills) for each in found]
    return [_together(each) for each in found] if item == 4 and _is_long(program) else found


def in_step(step: Program, shared: int) -> list[WarpLayout]:
    """Layouts of a rollout whose warps begin every step together, because its code is long; none where it is short.

    ``shared``: bytes that a warp needs. In a loop warps that do not wait for each other drift apart, until each fetches
    its own part of the code. 100 steps of a quadruped with contact, H200, float32: 451 instead of 248 million a second.
    """
    fits = IN_STEP * shared <= MOST_SHARED
    return [WarpLayout(IN_STEP, 1, (), in_step=True)] if _is_long(step) and fits else []


def _is_long(program: Program) -> bool:
    return sum(bool(node.args) for node in program.nodes()) > _LONG


def _together(layout: WarpLayout) -> WarpLayout:
    """Blocks of eight warps, which start together and fetch the same code. Contact steps of a quadruped, H200: 440
    instead of 403 million a second in float32; in float64, which waits for arithmetic, 138 instead of 152."""
    resident, rest = divmod(layout.warps * layout.resident, IN_STEP)
    return layout if rest else replace(layout, warps=IN_STEP, resident=resident)


def bold_and_safe(
    program: Program, rescheduled: float, shared: int, ahead: int = 0, staged: tuple[bool, ...] = ()
) -> list[WarpLayout]:
    """Layouts to try, the boldest first; ``shared``, ``ahead`` and ``staged`` as in ``fitted``.

    The last one fits as far as the schedule tells: a value alive costs one register, or two in float64. At best a
    compiler needs ``rescheduled`` of what is alive in the order of the schedule.
    """
    need = alive(program) * item_size(program.dtype) // 4
    safe = warps_per_scheduler(min(need, _MOST_REGISTERS))
    bold = min(safe + 1, warps_per_scheduler(min(int(rescheduled * need), _MOST_REGISTERS)))
    found = [fitted(warps, shared, ahead, staged) for warps in (bold, safe)]
    return found[1:] if found[0] == found[1] else found


def fitted(per_scheduler: int, shared: int, ahead: int, staged: tuple[bool, ...]) -> WarpLayout:
    """The layout with so many warps per scheduler, or as many as shared memory holds.

    ``shared`` are bytes of a warp, ``ahead`` those that it needs once more to fetch while it computes. It does where
    that costs no warp.
    """
    wanted = SCHEDULERS * min(per_scheduler, _MOST_WARPS)
    persistent = ahead > 0 and _fitting(wanted, shared + ahead) == _fitting(wanted, shared)
    total = _fitting(wanted, shared + ahead if persistent else shared)
    warps = SCHEDULERS if total % SCHEDULERS == 0 else 2 if total % 2 == 0 else 1
    return WarpLayout(warps, total // warps, staged, persistent)


def _fitting(warps: int, shared: int) -> int:
    """How many of so many warps, in blocks as small as one, shared memory holds."""
    return max(1, min(warps, _SHARED_PER_SM // (shared + _SHARED_OF_BLOCK)))


def warps_per_scheduler(registers: int) -> int:
    """Warps that fit if each thread has so many registers; registers are allocated in multiples of eight."""
    return _REGISTERS // (8 * max(1, math.ceil(registers / 8)))
