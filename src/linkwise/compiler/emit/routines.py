"""Functions written in a small subset of Python, as LLVM text.

Every value is a 64-bit integer (addresses are integers too). The subset: assignments to local names, ``if``,
``while``, ``for ... in range(...)``, ``break``, ``return``, integer arithmetic, comparisons, ``and``, ``or``,
``not``, calls of other functions of these modules and of the operations on memory in ``OPERATIONS``. Names
in capital letters and attributes of classes are constants. ``linkwise.compiler.entry`` is written in it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "sdiv",  # of numbers that are not negative
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.LShift: "shl",
    ast.RShift: "ashr",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
}


def module(
    sources: Sequence[tuple[str, Mapping[str, Any]]], entries: tuple[str, ...], others: Sequence[str] = ()
) -> str:
    """LLVM text of all functions of Python modules.

    Args:
        sources: text and names of each module.
        entries: functions that are called from elsewhere.
        others: functions of words that the text is put together with.
    """
    functions = [
        (node, names)
        for source, names in sources
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    ]
    known = {*others, *(node.name for node, _ in functions)}
    return "\n".join(
        _Function(node, names, known).text(external=node.name in entries) for node, names in functions
    )


class _Function:
    """The instructions of one function. Local names are places on the stack; LLVM turns them into registers."""

    def __init__(self, node: ast.FunctionDef, constants: Mapping[str, Any], functions: set[str]):
        self.node = node
        self.constants = constants
        self.functions = functions
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self.ends: list[str] = []  # where ``break`` goes
        self.count = 0

    def text(self, external: bool) -> str:
        parameters = [argument.arg for argument in self.node.args.args]
        for name in parameters:
            self.effect(f"store i64 %arg.{name}, ptr {self.place(name)}")
        self.block(self.node.body)
        self.effect("ret i64 0")
        head = ", ".join(f"i64 %arg.{name}" for name in parameters)
        places = [f"  {place} = alloca i64" for place in self.names.values()]
        linkage = "" if external else "internal "
        inlined = " alwaysinline" if any(ast.unparse(d) == "inline" for d in self.node.decorator_list) else ""
        first = f"define {linkage}i64 @{self.node.name}({head}) nounwind{inlined} {{"
        body = "\n".join([first, "entry:", *places])
        return "\n".join([body, *self.lines, "}", ""])

    # -- instructions ----------------------------------------------------------------------------------------

    def effect(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def value(self, instruction: str) -> str:
        self.count += 1
        self.effect(f"%v{self.count} = {instruction}")
        return f"%v{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def start(self, label: str) -> None:
        """Begin a block; the one before it continues there unless it has ended."""
        self.effect(f"br label %{label}")
        self.lines.append(f"{label}:")

    def place(self, name: str) -> str:
        return self.names.setdefault(name, f"%local.{name}")

    def pointer(self, address: str) -> str:
        return self.value(f"inttoptr i64 {address} to ptr")

    # -- statements ------------------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            getattr(self, f"do_{type(statement).__name__.lower()}")(statement)

    def do_assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        assert isinstance(target, ast.Name)
        value = self.expression(node.value)
        self.effect(f"store i64 {value}, ptr {self.place(target.id)}")

    def do_augassign(self, node: ast.AugAssign) -> None:
        assert isinstance(node.target, ast.Name)
        place = self.place(node.target.id)
        old = self.value(f"load i64, ptr {place}")
        new = self.value(f"{_ARITHMETIC[type(node.op)]} i64 {old}, {self.expression(node.value)}")
        self.effect(f"store i64 {new}, ptr {place}")

    def do_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.expression(node.value)

    def do_return(self, node: ast.Return) -> None:
        assert node.value is not None
        self.effect(f"ret i64 {self.expression(node.value)}")
        self.lines.append(f"{self.label()}:")  # what follows is never reached

    def do_break(self, node: ast.Break) -> None:
        self.effect(f"br label %{self.ends[-1]}")
        self.lines.append(f"{self.label()}:")

    def do_pass(self, node: ast.Pass) -> None:
        pass

    def do_if(self, node: ast.If) -> None:
        yes, no, end = self.label(), self.label(), self.label()
        self.branch(node.test, yes, no)
        self.lines.append(f"{yes}:")
        self.block(node.body)
        self.effect(f"br label %{end}")
        self.lines.append(f"{no}:")
        self.block(node.orelse)
        self.start(end)

    def do_while(self, node: ast.While) -> None:
        self.loop(node.test, node.body, [])

    def do_for(self, node: ast.For) -> None:
        """``for name in range(...)``: the bounds are computed once."""
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        assert ast.unparse(node.iter.func) == "range"
        name = node.target.id
        first, last = ([ast.Constant(0)] + node.iter.args)[-2:]
        self.count += 1
        end = f"{name}.end{self.count}"
        for where, bound in ((name, first), (end, last)):
            self.effect(f"store i64 {self.expression(bound)}, ptr {self.place(where)}")
        test = ast.Compare(ast.Name(name), [ast.Lt()], [ast.Name(end)])
        step = ast.AugAssign(ast.Name(name), ast.Add(), ast.Constant(1))
        self.loop(test, node.body, [step])

    def loop(self, test: ast.expr, body: list[ast.stmt], step: list[ast.stmt]) -> None:
        head, inside, end = self.label(), self.label(), self.label()
        self.start(head)
        self.branch(test, inside, end)
        self.lines.append(f"{inside}:")
        self.ends.append(end)
        self.block(body + step)
        self.ends.pop()
        self.effect(f"br label %{head}")
        self.lines.append(f"{end}:")

    # -- conditions ------------------------------------------------------------------------------------------

    def branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Continue at one of two labels."""
        if isinstance(test, ast.BoolOp):
            for part in test.values[:-1]:
                further = self.label()
                if isinstance(test.op, ast.And):
                    self.branch(part, further, no)
                else:
                    self.branch(part, yes, further)
                self.lines.append(f"{further}:")
            self.branch(test.values[-1], yes, no)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.branch(test.operand, no, yes)
        else:
            self.effect(f"br i1 {self.condition(test)}, label %{yes}, label %{no}")

    def condition(self, test: ast.expr) -> str:
        if isinstance(test, ast.Compare):
            (operator,), (right,) = test.ops, test.comparators
            left = self.expression(test.left)
            return self.value(f"icmp {_COMPARISONS[type(operator)]} i64 {left}, {self.expression(right)}")
        return self.value(f"icmp ne i64 {self.expression(test)}, 0")

    # -- expressions -----------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(int(node.value))  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return str(int(getattr(self.constants[node.value.id], node.attr)))
        if isinstance(node, ast.BinOp):
            left, right = self.expression(node.left), self.expression(node.right)
            return self.value(f"{_ARITHMETIC[type(node.op)]} i64 {left}, {right}")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.value(f"sub i64 0, {self.expression(node.operand)}")
        if isinstance(node, ast.IfExp):
            yes, no = self.expression(node.body), self.expression(node.orelse)
            return self.value(f"select i1 {self.condition(node.test)}, i64 {yes}, i64 {no}")
        if isinstance(node, ast.Compare):
            return self.value(f"zext i1 {self.condition(node)} to i64")
        if isinstance(node, ast.BoolOp):
            return self.truth(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            arguments = [self.expression(argument) for argument in node.args]
            return self.call(node.func.id, arguments)
        raise NotImplementedError(f"{self.node.name}, line {node.lineno}: {ast.unparse(node)}")

    def truth(self, node: ast.BoolOp) -> str:
        """1 or 0."""
        self.count += 1
        place = self.place(f"truth{self.count}")
        yes, end = self.label(), self.label()
        self.effect(f"store i64 0, ptr {place}")
        self.branch(node, yes, end)
        self.lines.append(f"{yes}:")
        self.effect(f"store i64 1, ptr {place}")
        self.start(end)
        return self.value(f"load i64, ptr {place}")

    def name(self, name: str) -> str:
        if name.isupper():
            return str(int(self.constants[name]))
        assert name in self.names, f"{self.node.name}: {name} is read before it is assigned"
        return self.value(f"load i64, ptr {self.names[name]}")

    def call(self, name: str, arguments: list[str]) -> str:
        if name in OPERATIONS:
            return OPERATIONS[name](self, *arguments)
        assert name in self.functions, f"{self.node.name}: no function {name}"
        return self.value(f"call i64 @{name}({_integers(arguments)})")


def _integers(arguments: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"i64 {argument}" for argument in arguments)


# -- operations on memory ----------------------------------------------------------------------------------------


def _load(f: _Function, address: str) -> str:
    return f.value(f"load i64, ptr {f.pointer(address)}")


def _load_int(f: _Function, address: str) -> str:
    return f.value(f"sext i32 {f.value(f'load i32, ptr {f.pointer(address)}')} to i64")


def _store(f: _Function, address: str, value: str) -> str:
    f.effect(f"store i64 {value}, ptr {f.pointer(address)}")
    return "0"


def _stack(f: _Function, size: str) -> str:
    return f.value(f"ptrtoint ptr {f.value(f'alloca i8, i64 {size}, align 64')} to i64")


def _call_pointer(f: _Function, function: str, *arguments: str) -> str:
    return f.value(f"call i64 {f.pointer(function)}({_integers(arguments)})")


def _call_int(f: _Function, function: str, *arguments: str) -> str:
    return f.value(f"sext i32 {f.value(f'call i32 {f.pointer(function)}({_integers(arguments)})')} to i64")


def _call_double(f: _Function, function: str, argument: str, target: str) -> str:
    found = f.value(f"call double {f.pointer(function)}(i64 {argument})")
    f.effect(f"store double {found}, ptr {f.pointer(target)}")
    return "0"


def _moved(kind: str, instruction: str, made: str) -> Callable[..., str]:
    """An operation ``(target, source)`` that loads, converts and stores one number."""

    def move(f: _Function, target: str, source: str) -> str:
        found = f.value(f"load {kind}, ptr {f.pointer(source)}, align 4")
        if instruction:
            found = f.value(f"{instruction} {kind} {found} to {made}")
        f.effect(f"store {made}, ptr {f.pointer(target)}, align 4".replace(made, f"{made} {found}", 1))
        return "0"

    return move


def _is_nan(kind: str) -> Callable[..., str]:
    def look(f: _Function, address: str) -> str:
        found = f.value(f"load {kind}, ptr {f.pointer(address)}")
        return f.value(f"zext i1 {f.value(f'fcmp uno {kind} {found}, {found}')} to i64")

    return look


OPERATIONS: dict[str, Callable[..., str]] = {
    "load": _load,
    "load_int": _load_int,
    "store": _store,
    "stack": _stack,
    "call": _call_pointer,
    "call_int": _call_int,
    "call_double": _call_double,
    "copy_double": _moved("double", "", "double"),
    "copy_float": _moved("float", "", "float"),
    "float_to_double": _moved("float", "fpext", "double"),
    "double_to_float": _moved("double", "fptrunc", "float"),
    "int_to_double": _moved("i64", "sitofp", "double"),
    "is_nan_double": _is_nan("double"),
    "is_nan_float": _is_nan("float"),
}
