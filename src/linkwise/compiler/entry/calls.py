"""The functions that the interpreter calls: of kernels, and of methods of robots."""

from __future__ import annotations

from linkwise.compiler.entry.computation import compute, compute_batch, compute_single
from linkwise.compiler.entry.devices import compute_on_device
from linkwise.compiler.entry.operations import call, call_int, inline, load, stack, store
from linkwise.compiler.runtime.layout import (
    COUNT_MASK,
    CTYPES_ADDRESS,
    FAILED,
    LENGTH,
    NOT_TAKEN,
    OPTION,
    OPTIONAL_INPUT,
    TARGET,
    TUPLE_ITEMS,
    TYPE,
    Entry,
    Globals,
    KnownCall,
    MethodTable,
    Plan,
    Target,
)


def call_kernel(callable: int, args: int, count: int, keywords: int) -> int:
    """A kernel: as many arrays as it has inputs, ``out`` and ``threads``."""
    target = load(callable + TARGET)
    table = load(target + Target.globals)
    given = count & COUNT_MASK
    out = load(table + Globals.none)
    threads = out
    taken = given == load(target + Target.arguments)
    if keywords:
        for k in range(load(keywords + LENGTH)):
            name = load(keywords + TUPLE_ITEMS + 8 * k)
            value = load(args + 8 * (given + k))
            if name == load(table + Globals.out_name):
                out = value
            elif name == load(table + Globals.threads_name):
                threads = value
            else:
                taken = 0
    if taken:
        made = run_target(target, args, out, threads)
        if made == FAILED:
            return 0
        if made:
            return made
    return fall_back(table, load(target + Target.fallback), callable, args, given, keywords)


def run_target(target: int, args: int, out: int, threads: int) -> int:
    """The prelude, where there is one, and the kernel with what it gives."""
    prelude = load(target + Target.prelude)
    main = load(target + Target.main)
    if prelude == 0:
        return compute(main, args, out, threads, 0)
    states = load(target + Target.states)
    none = load(load(main + Plan.globals) + Globals.none)
    first = compute(prelude, args + 8 * states, none, none, 0)
    if first <= FAILED:  # or NOT_TAKEN
        return first
    inputs = stack(8 * (states + 1))
    for k in range(states):
        store(inputs + 8 * k, load(args + 8 * k))
    store(inputs + 8 * states, first)
    made = compute(main, inputs, out, threads, 0)
    call(load(load(main + Plan.globals) + Globals.release), first)
    return made


def call_method(callable: int, args: int, count: int, keywords: int) -> int:
    """A method of a robot, with options it was called with before."""
    method = load(callable + TARGET)
    table = load(method + MethodTable.globals)
    given = count & COUNT_MASK
    if given > 0:
        robot = load(args)
        kind = load(robot + TYPE)
        owner = load(method + MethodTable.owner)
        if kind == owner or call_int(load(table + Globals.is_subtype), kind, owner):
            made = NOT_TAKEN
            known = load(robot + load(method + MethodTable.slot))
            if known:
                known = load(known + CTYPES_ADDRESS) + load(method + MethodTable.index)
                made = call_plain(table, known, args + 8, given - 1, keywords)
                if made == NOT_TAKEN:
                    made = call_known(table, method, known, args + 8, given - 1, keywords)
            if made == FAILED:
                return 0
            if made:
                return made
    return fall_back(table, load(method + MethodTable.fallback), callable, args, given, keywords)


def fall_back(table: int, function: int, callable: int, args: int, given: int, keywords: int) -> int:
    """Call ``function(callable, *args, **keywords)``."""
    total = given
    if keywords:
        total += load(keywords + LENGTH)
    words = stack(8 * (total + 1))
    store(words, callable)
    for k in range(total):
        store(words + 8 * (k + 1), load(args + 8 * k))
    return call(load(table + Globals.vectorcall), function, words, given + 1, keywords)


@inline
def call_plain(table: int, known: int, args: int, given: int, keywords: int) -> int:
    """A call without options."""
    plan = load(known + KnownCall.plain)
    if plan == 0 or keywords or given != load(plan + Plan.inputs):
        return NOT_TAKEN
    made = compute_single(table, plan, args, load(known + KnownCall.look))
    if made == NOT_TAKEN:
        made = compute_batch(table, plan, args, load(known + KnownCall.look))
    if made == NOT_TAKEN and load(plan + Plan.devices):
        return compute_on_device(table, plan, args, load(table + Globals.none))
    return made


def call_known(table: int, method: int, known: int, args: int, given: int, keywords: int) -> int:
    """Find the plan for these options among the known calls of the robot."""
    if given > load(method + MethodTable.positional):
        return NOT_TAKEN
    parameters = load(method + MethodTable.parameters)
    values = stack(8 * parameters)
    if not collect(method, args, given, keywords, values):
        return NOT_TAKEN
    first = load(known + KnownCall.first)
    entry = first
    while entry:
        if matches(table, method, entry, values, 0):
            break
        entry = load(entry + Entry.next)
    if entry == 0:  # a name may be another object with the same text
        entry = first
        while entry:
            if matches(table, method, entry, values, 1):
                break
            entry = load(entry + Entry.next)
    if entry == 0:
        return NOT_TAKEN
    plan = load(entry + Entry.plan)
    order = load(entry + Entry.order)
    count = load(plan + Plan.inputs)
    inputs = stack(8 * count)
    for k in range(count):
        store(inputs + 8 * k, load(values + load(order + 8 * k)))
    out = load(values + load(method + MethodTable.out))
    threads = load(values + load(method + MethodTable.threads))
    return compute(plan, inputs, out, threads, load(entry + Entry.look))


def collect(method: int, args: int, given: int, keywords: int, values: int) -> int:
    """The value of every parameter; 0 where one is missing or unknown."""
    parameters = load(method + MethodTable.parameters)
    defaults = load(method + MethodTable.defaults)
    names = load(method + MethodTable.names)
    for k in range(given):
        store(values + 8 * k, load(args + 8 * k))
    for k in range(given, parameters):
        store(values + 8 * k, load(defaults + 8 * k))
    if keywords:
        for k in range(load(keywords + LENGTH)):
            name = load(keywords + TUPLE_ITEMS + 8 * k)
            found = given
            while found < parameters:
                if load(names + 8 * found) == name:
                    break
                found += 1
            if found == parameters:
                return 0
            store(values + 8 * found, load(args + 8 * (given + k)))
    for k in range(parameters):
        if load(values + 8 * k) == 0:
            return 0
    return 1


def matches(table: int, method: int, entry: int, values: int, by_text: int) -> int:
    """Whether a known call had the same options."""
    keys = load(entry + Entry.keys)
    roles = load(method + MethodTable.roles)
    for k in range(load(method + MethodTable.parameters)):
        role = load(roles + 8 * k)
        value = load(values + 8 * k)
        key = load(keys + 8 * k)
        if role == OPTIONAL_INPUT and (value != load(table + Globals.none)) != key:
            return 0
        if role == OPTION and value != key:
            text = load(table + Globals.str_type)
            if by_text == 0 or load(value + TYPE) != text or load(key + TYPE) != text:
                return 0
            if call_int(load(table + Globals.compare_text), value, key) != 0:
                return 0
    return 1
