"""The Rust crate of a package: ``no_std``, functions of arrays around the generated C, and a build script without
dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkwise.compiler.emit import c
from linkwise.core import foreign
from linkwise.embedded.arguments import UNITS
from linkwise.embedded.coded import Coded
from linkwise.robot.robot import Robot
from linkwise.version import __version__

_WORDS = """
    as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut
    pub ref return self static struct super trait true type unsafe use where while abstract become box do final gen
    macro override priv try typeof unsized virtual yield
"""
KEYWORDS = frozenset(_WORDS.split())

_BUILD = """\
//! Compiles the C sources. CC, AR and CFLAGS name other tools and options, such as those of a cross compiler.

use std::env::var;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &[&str] = &[
    @sources@
];

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn main() {
    let tool = |name: &str, usual: &str| var(name).unwrap_or_else(|_| usual.into());
    let out = PathBuf::from(var("OUT_DIR").expect("run by cargo"));
    let library = out.join("lib@prefix@.a");
    let _ = std::fs::remove_file(&library);
    let mut archive = Command::new(tool("AR", "ar"));
    archive.arg("rcs").arg(&library);
    for source in SOURCES {
        let object = out.join(Path::new(source).with_extension("o").file_name().expect("a file"));
        let mut compiler = Command::new(tool("CC", "cc"));
        compiler.args(["-std=c99", "-fPIC"@no_errno@]).args(tool("CFLAGS", "-O2").split_whitespace());
        compiler.arg("-ffp-contract=off"); // after CFLAGS, so that none of them changes a rounding
        run(compiler.args(["-I../include", "-I../src", "-c", source, "-o"]).arg(&object));
        archive.arg(&object);
        println!("cargo:rerun-if-changed={source}");
    }
    run(&mut archive);
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=@prefix@");
    if var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-lib=m");
    }
}
"""


def crate(
    robot: Robot,
    prefix: str,
    functions: Sequence[Coded],
    sources: Iterable[str],
    about: str,
    constant_time: bool,
) -> dict[str, str]:
    """The files of the crate by their paths in the package.

    Args:
        robot: the robot.
        prefix: how names of the package begin; the name of the crate.
        functions: those of the package.
        sources: names of the C files.
        about: what the package is, one line.
        constant_time: whether square roots must not set errno.
    """
    listed = "\n    ".join(f'"../src/{name}",' for name in sources)
    build = _BUILD.replace("@sources@", listed).replace("@prefix@", prefix)
    version = ".".join((__version__.split("+")[0].split(".dev")[0].split(".") + ["0", "0"])[:3])
    return {
        "rust/Cargo.toml": f'[package]\nname = "{prefix}"\nversion = "{version}"\nedition = "2021"\npublish = false\n'
        f'build = "build.rs"\nlinks = "{prefix}"\n\n[lib]\npath = "lib.rs"\n',
        "rust/build.rs": build.replace("@no_errno@", ', "-fno-math-errno"' if constant_time else ""),
        "rust/lib.rs": _library(robot, functions, prefix, about),
    }


def _library(robot: Robot, functions: Sequence[Coded], prefix: str, about: str) -> str:
    real = "f64" if functions[0].real == "double" else "f32"
    parts = [
        f"//! {foreign.rust_comment(about)}\n//!\n"
        "//! Functions of arrays around the C of this package. Nothing is allocated.\n",
        "#![no_std]\n#![warn(missing_docs)]\n#![allow(clippy::too_many_arguments)]\n",
        f"/// The type of all numbers.\npub type Real = {real};\n"
        f"/// Number of velocity coordinates.\npub const N: usize = {robot.dof};\n"
        f"/// Number of position coordinates.\npub const NQ: usize = {robot.nq};\n",
        "/// The functions in C. Pointers are to arrays of the sizes that the C header states, which do not overlap.\n"
        "pub mod raw {\n    use super::Real;\n    use core::ffi::c_long;\n\n"
        '    #[allow(unused)]\n    type Whole = c_long;\n\n    extern "C" {\n'
        + "".join(map(_declared, functions))
        + "    }\n}\n",
    ]
    parts += [_wrapped(prefix, f) for f in functions if not f.function.nest.numbers]
    return "\n".join(parts)


def _declared(f: Coded) -> str:
    arguments = [
        f"{_name(a.name)}: *{'const' if a.array.kind == 'input' else 'mut'} Real" for a in f.arguments
    ]
    arguments += [f"{number}: Whole" for number in f.function.nest.numbers]
    back = "" if f.function.status is None else " -> core::ffi::c_int"
    return f"        /// {_text(f.entry.summary)}.\n        pub fn {f.name}({', '.join(arguments)}){back};\n"


def _wrapped(prefix: str, f: Coded) -> str:
    """A function that gives back arrays; several come in a structure."""
    short = _name(f.name.removeprefix(f"{prefix}_"))
    given = [a for a in f.arguments if a.array.kind == "input"]
    results = [a for a in f.arguments if a.array.kind == "output"]
    rooms = [a for a in f.arguments if a.array.kind == "scratch"]
    text, one = "", len(results) == 1
    kind = f"[Real; {results[0].size}]" if one else "".join(word.capitalize() for word in short.split("_"))
    if not one:
        fields = "".join(f"    /// {_said(a)}\n    pub {_name(a.name)}: [Real; {a.size}],\n" for a in results)
        text += f"/// What [`{short}`] gives.\n#[derive(Clone, Copy, Debug, PartialEq)]\n"
        text += f"pub struct {kind} {{\n{fields}}}\n\n"
    status = f.function.status is not None
    text += f"/// {_text(f.entry.summary)}.\n///\n"
    text += "".join(f"/// * `{_name(a.name)}`: {_said(a)}\n" for a in given)
    arguments = ", ".join(f"{_name(a.name)}: &[Real; {a.size}]" for a in given)
    if status:
        names = ", ".join(_name(a.name) for a in given)
        text += f"pub fn {short}({arguments}) -> {kind} {{\n"
        text += f"    let (Ok(found) | Err(found)) = {short}_checked({names});\n    found\n}}\n\n"
        text += f"/// [`{short}`]; `Err` where a number that it needs is not finite.\n"
        text += f"pub fn {short}_checked({arguments}) -> Result<{kind}, {kind}> {{\n"
    else:
        text += f"pub fn {short}({arguments}) -> {kind} {{\n"
    text += "".join(f"    let mut {_name(a.name)} = [0.0; {a.size}];\n" for a in (*results, *rooms))
    passed = ", ".join(
        f"{_name(a.name)}.{'as_ptr' if a.array.kind == 'input' else 'as_mut_ptr'}()" for a in f.arguments
    )
    text += (
        "    // SAFETY: all arrays have the sizes that the function reads and writes, and do not overlap.\n"
    )
    text += f"    {'let fault = ' if status else ''}unsafe {{ raw::{f.name}({passed}) }};\n"
    found = _name(results[0].name) if one else f"{kind} {{ {', '.join(_name(a.name) for a in results)} }}"
    if status:
        found = f"if fault == 0 {{ Ok({found}) }} else {{ Err({found}) }}"
    return text + f"    {found}\n}}\n"


def _said(a: c.Argument) -> str:
    title = a.array.title
    return _text(f"{title}: {UNITS[title]}" if title in UNITS else title)


def _text(words: str) -> str:
    return foreign.rust_comment(words)


def _name(name: str) -> str:
    return f"{name}_" if name in KEYWORDS else name
