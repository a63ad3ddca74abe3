"""Names from files never become code: hostile ones go through every target, are built and run; nothing foreign runs."""

import ast
import html.parser
import json
import re
import shutil
import subprocess
import sys
import tomllib
import unicodedata
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.cli.app import run as linkwise
from linkwise.compiler.emit import TARGETS
from linkwise.core import foreign
from linkwise.embedded import Package, package
from linkwise.systems.fmu import Fmu
from linkwise.systems.ros2_control import Ros2Controller

MARK = "lw_ran_foreign_code"
SYSTEM = f'extern int system(const char *); system("touch {MARK}");'
C_CODE = f"__attribute__((constructor)) static void lw_x(void) {{ {SYSTEM} }}"
PAYLOADS = {
    "comment": f"*/ {C_CODE} /*",
    "comment with dots": f"·/ {C_CODE} /·",  # a dot is written as an asterisk in ASCII
    "lines": f"x\n{C_CODE}\n//",
    "carriage returns": f"x\r{C_CODE}\r//",
    "line separators": f"x\u2028{C_CODE}\u2029\x85{C_CODE}\x0b\x0c{C_CODE}",
    "continued": "x \\",
    "trigraph": "x ??/",
    "trigraph of letters": "x éé/",
    "asterisk": "x *",
    "slash": "/ x /*/ x //* x",
    "quotes": f'"; {C_CODE} char *lw_y = "',
    "docstring": f'"""\nimport pathlib; pathlib.Path("{MARK}").touch()\n"""',
    "docstring and backslash": f'\\"""+str(__import__("pathlib").Path("{MARK}").touch())+"""',
    "cmake": f"x\nexecute_process(COMMAND touch {MARK})\n#",
    "cmake brackets": f"[[\n]]\nexecute_process(COMMAND touch {MARK})\n",
    "make": f"x\n$(shell touch {MARK})\nall: ; touch {MARK}",
    "shell": f"`touch {MARK}` $(touch {MARK}); touch {MARK} | touch {MARK}",
    "rust": f'x\nconst _: () = {{ compile_error!("{MARK}") }};',
    "rust documentation": f'```\nstd::fs::write("{MARK}", "x").unwrap();\n```',
    "rust indented": f'     std::fs::write("{MARK}", "x").unwrap();',
    "template": "@about@ @call@ @sources@ @prefix@ @CMAKE_INSTALL_PREFIX@ {title} {script} %s %n",
    "markup": f'"><script>alert("{MARK}")</script><{MARK} onload=alert(1)>',
    "markup in quotes": f"' onload='alert(1)' x='</script><{MARK}>-->]]></title>",
    "xml": f"]]>--><{MARK}/>&{MARK};",
    "yaml": f'"\n      - {MARK}: "x',
    "terminal": "\x1b]0;owned\x07\x1b[31mred\x9b31m\x90\x7f",
    "bidi": "\u202etxt.exe\u2066\u200f\ufeff\U000e0041",
    "braces": "{alert(1)} ${alert(1)} {{x}}",
    "path": f"../../{MARK}",
}
NAMES = list(PAYLOADS.values())


def model(name: str, *joints: str, source: str = "x") -> str:
    """A TOML file of two links with these names."""
    q = foreign.toml_string
    joint, other = joints or ("a", "b")
    return f"""
name = {q(name)}
convention = "mdh"
source = {q(source)}
[[joint]]
name = {q(joint)}
mass = 1.0
com = [0.5, 0.0, 0.0]
[[joint]]
name = {q(other)}
a = 1.0
mass = 1.0
com = [0.5, 0.0, 0.0]
[[frame]]
name = {q(name + " tip")}
xyz = [1.0, 0.0, 0.0]
"""


def robot(tmp_path: Path, *names: str) -> lw.Robot:
    path = tmp_path / "strange.toml"
    path.write_text(model(*names, source=names[0]), encoding="utf-8")
    loaded = lw.load(path)
    assert loaded.name == names[0]
    return loaded


def built(*command: str | Path, cwd: Path, fails: bool = False) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=300)
    assert fails or not done.returncode, done.stdout + done.stderr
    return done.stdout


def assert_nothing_ran(*folders: Path) -> None:
    found = [path for folder in folders for path in folder.rglob(MARK)]
    assert not found
    assert not Path(MARK).exists()


# -- single emitters, all names at once -------------------------------------------------------------------------------


def test_comments_of_c(tmp_path):
    """Every name in a comment of every kind; then code that fails to compile if one swallowed its next line."""
    lines = [f"/* {foreign.c_comment(name)} */\nint block_{k};" for k, name in enumerate(NAMES)]
    lines += [f"/*{foreign.c_comment(name)}*/\nint tight_{k};" for k, name in enumerate(NAMES)]
    uses = [f"block_{k} = tight_{k} = 0;" for k in range(len(NAMES))]
    (tmp_path / "x.c").write_text("\n".join([*lines, "int main(void) {", *uses, "return 0; }"]), "utf-8")
    built("gcc", "-std=c99", "-trigraphs", "-Wall", "-Werror", "x.c", "-o", "x", cwd=tmp_path)
    built("./x", cwd=tmp_path)
    lines = [f"// {foreign.line_comment(name)}\nint line_{k};" for k, name in enumerate(NAMES)]
    uses = [f"line_{k} = 0;" for k in range(len(NAMES))]
    (tmp_path / "x.cpp").write_text("\n".join([*lines, "int main() {", *uses, "return 0; }"]), "utf-8")
    built("g++", "-std=c++14", "-trigraphs", "-Wall", "-Werror", "x.cpp", "-o", "y", cwd=tmp_path)
    built("./y", cwd=tmp_path)
    assert_nothing_ran(tmp_path)


def test_strings_of_c(tmp_path):
    """They come back as they were, with trigraphs on."""
    prints = "\n".join(f"fputs({foreign.c_string(name)}, stdout); putchar(0);" for name in NAMES)
    (tmp_path / "x.c").write_text(f"#include <stdio.h>\nint main(void) {{\n{prints}\nreturn 0; }}\n")
    built("gcc", "-std=c99", "-trigraphs", "x.c", "-o", "x", cwd=tmp_path)
    said = subprocess.run([tmp_path / "x"], capture_output=True, cwd=tmp_path, check=True).stdout
    assert said.decode().split("\0")[:-1] == NAMES
    assert_nothing_ran(tmp_path)


def test_python(tmp_path):
    docs = "\n".join(
        f'def f{k}():\n    """{foreign.python_docstring(name)}"""\n' for k, name in enumerate(NAMES)
    )
    comments = "\n".join(f"# {foreign.python_comment(name)}\nx{k} = 1" for k, name in enumerate(NAMES))
    (tmp_path / "x.py").write_text(f"{docs}\n{comments}\nprint(f0.__doc__, {len(NAMES)})\n", encoding="utf-8")
    assert built(sys.executable, "-P", "x.py", cwd=tmp_path).endswith(f"{len(NAMES)}\n")
    assert_nothing_ran(tmp_path)


@pytest.mark.skipif(not shutil.which("cmake"), reason="no CMake")
def test_cmake(tmp_path):
    lines = [f"# {foreign.cmake_comment(name)}\nset(x{k} 1)" for k, name in enumerate(NAMES)]
    lines += [f"#{foreign.cmake_comment(name)}\nset(y{k} 1)" for k, name in enumerate(NAMES)]
    last = len(NAMES) - 1
    (tmp_path / "x.cmake").write_text(
        "\n".join([*lines, f'message(STATUS "${{x{last}}}${{y{last}}}")']), "utf-8"
    )
    assert "11" in built("cmake", "-P", "x.cmake", cwd=tmp_path)
    assert_nothing_ran(tmp_path)


@pytest.mark.skipif(not shutil.which("rustdoc"), reason="no Rust")
def test_rust(tmp_path):
    """Also as documentation, whose code blocks are compiled and run."""
    lines = [f"/// {foreign.rust_comment(name)}\npub const X{k}: i32 = 1;" for k, name in enumerate(NAMES)]
    inner = "".join(f"//! {foreign.rust_comment(name)}\n//!\n" for name in NAMES)
    (tmp_path / "x.rs").write_text("\n".join([inner, *lines]), encoding="utf-8")
    said = built("rustdoc", "--test", "--crate-name", "x", "x.rs", cwd=tmp_path)
    assert "running 0 tests" in said
    assert_nothing_ran(tmp_path)


def test_strings_come_back():
    for name in NAMES:
        assert tomllib.loads(f"x = {foreign.toml_string(name)}")["x"] == name
        assert json.loads(foreign.json_text(name)) == name
        assert json.loads(foreign.json_in_html(name)) == name
        held = ET.fromstring(f'<a b="{foreign.xml_text(name)}">{foreign.xml_text(name)}</a>')
        assert held.get("b") == held.text
        if all(c in "\n\r\t" or unicodedata.category(c) != "Cc" for c in name):
            assert held.text == name


def test_yaml():
    yaml = pytest.importorskip("yaml")
    for name in NAMES:
        assert yaml.safe_load(f"- {foreign.yaml_string(name)}") == [name]


def test_terminals_see_no_control_characters():
    whole = "".join(map(chr, [*range(0x3000), *range(0xE000, 0x110000, 251)])) + "\ud800"
    for text in (
        foreign.terminal(whole),
        foreign.line(whole),
        foreign.json_text(whole),
        foreign.html_text(whole),
    ):
        unseen = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
        assert unseen <= {"\n", "\t"}
    assert "\n" not in foreign.line(whole)
    assert foreign.terminal("q̇ τ é 日本\n") == "q̇ τ é 日本\n"


def test_names_of_files_stay_in_their_folder():
    for name in [*NAMES, "", ".", "..", "/etc/passwd", "a\0b", "x" * 1000, "é" * 1000, "\ud800"]:
        found = foreign.file_name(name)
        assert re.fullmatch(r"\w[\w.-]*", found), found
        assert len(found.encode()) <= 150


def test_templates_escape_what_is_not_marked_as_code():
    text = foreign.fill(
        "// @about@\n@body@ @other@",
        {"about": "a\n@body@", "body": foreign.Code("b\n")},
        foreign.line_comment,
    )
    assert text == "// a @body@\nb\n @other@"


# -- whole targets ----------------------------------------------------------------------------------------------------

TRIPLES = [
    ("comment", "comment with dots", "lines"),
    ("docstring", "docstring and backslash", "template"),
    ("cmake", "rust documentation", "quotes"),
    ("markup", "markup in quotes", "terminal"),
    ("rust", "trigraph of letters", "continued"),
]


@pytest.mark.parametrize("names", TRIPLES[:3], ids=lambda names: names[0])
def test_packages_build_and_run_no_foreign_code(tmp_path, names):
    given = robot(tmp_path, *(PAYLOADS[name] for name in names))
    made = Package(given, ["gravity_torques", "gravity_pd"], count=2)
    made.write(tmp_path / "p")
    folder = tmp_path / "p"
    built("make", "check", "CFLAGS=-O0", cwd=folder)
    built("make", "build/example", "CFLAGS=-O0", cwd=folder)
    readme = (folder / "README.md").read_text("utf-8")
    assert not {c for c in readme if unicodedata.category(c) in ("Cc", "Cf")} - {"\n"}
    assert "<" not in readme
    (tmp_path / "use.cpp").write_text(f'#include "{made.prefix}.hpp"\nint main() {{ return 0; }}\n')
    built("g++", "-std=c++17", "-trigraphs", "-fsyntax-only", f"-I{folder}/include", "use.cpp", cwd=tmp_path)
    if shutil.which("cmake"):
        built("cmake", "-S", ".", "-B", "b", cwd=folder)
    if shutil.which("rustdoc"):
        said = built("rustdoc", "--test", "--edition", "2021", "--crate-name", "x", "rust/lib.rs", cwd=folder)
        assert "running 0 tests" in said
    assert json.loads((folder / "linkwise.json").read_text())["robot"] == given.name
    assert_nothing_ran(tmp_path)


@pytest.mark.parametrize("name", ["math", "class", "int", "stdio", "fn", "std", "x" * 5000, "", "7", "日本"])
def test_names_that_languages_have_for_themselves(name):
    prefix = package._prefix(name)
    assert re.fullmatch(r"[a-z]\w{0,120}", prefix)
    assert prefix not in {"math", "class", "int", "stdio", "fn", "std"}


@pytest.mark.parametrize("names", TRIPLES[:3], ids=lambda names: names[0])
def test_ros2_packages_build_and_run_no_foreign_code(tmp_path, names):
    given = robot(tmp_path, *(PAYLOADS[name] for name in names))
    who = "A <b@c.d>"
    made = Ros2Controller(given, "computed_torque", maintainer=who, license=PAYLOADS["xml"])
    folder = tmp_path / "p"
    made.write(folder)
    if shutil.which("cmake"):
        built("cmake", "-S", ".", "-B", "b", cwd=folder, fails=True)  # there is no ament here
    for path in folder.glob("src/*.c"):
        built("gcc", "-std=c99", "-fsyntax-only", "-I../include", path.name, cwd=path.parent)
    texts = {path: path.read_text("utf-8") for path in folder.rglob("*") if path.suffix in (".xml", ".urdf")}
    assert len(texts) == 3
    for text in texts.values():
        ET.fromstring(text)
    listed = [
        joint.get("name") for joint in ET.fromstring(texts[folder / "urdf/ros2_control.urdf"]).iter("joint")
    ]
    assert len(listed) == 2
    code = (folder / "src/controller.cpp").read_text("utf-8")
    harmless = Ros2Controller(lw.load("two_link"), "computed_torque").files["src/controller.cpp"]
    assert code.count("\n") == harmless.count("\n")
    assert_nothing_ran(tmp_path)


def test_units_for_simulation_build_and_run_no_foreign_code(tmp_path):
    given = robot(tmp_path, *(PAYLOADS[name] for name in TRIPLES[0]))
    for version in ("2.0", "3.0"):
        unit = Fmu(given, "gravity_torques", version=version)
        ET.fromstring(unit.files["modelDescription.xml"])
        assert unit.binary is not None
        (tmp_path / "fmu.so").write_bytes(unit.binary[1])
        built(sys.executable, "-c", "import ctypes; ctypes.CDLL('./fmu.so')", cwd=tmp_path)
    assert_nothing_ran(tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_single_files_run_no_foreign_code(tmp_path, target, capsys):
    """Every name through every target; files are compiled or imported where something for it is here."""
    given = lw.load("two_link")
    kernel = given.kernel("gravity_torques") if target != "acados" else given.kernel("forward_dynamics")
    plain = kernel.source(target, description="x", function_name="f")
    for k, name in enumerate(NAMES):
        text = kernel.source(target, description=name, function_name="f")
        if target != "python":
            assert text.isascii() or target == "wasm"
        path = tmp_path / f"x{k}.{'py' if target == 'python' else 'c'}"
        path.write_text(text, encoding="utf-8")
        if target == "python":
            compiled = compile(text, str(path), "exec")
            space: dict = {}
            exec(compiled, space)
            assert set(space) - {"__builtins__"} == {"f", "np"}
        else:  # the comment is all that differs
            assert _without_comments(text) == _without_comments(plain)
    assert_nothing_ran(tmp_path)


def _without_comments(text: str) -> str:
    """As a C compiler sees it: comments end at the first end."""
    return re.sub(r"/\*.*?\*/", "", text.replace("??/", "\\").replace("\\\n", ""), flags=re.DOTALL)


# -- pages ------------------------------------------------------------------------------------------------------------


class Elements(html.parser.HTMLParser):
    """The elements of a page, and attributes that run code."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found += [tag, *(name for name, _ in attrs if name.startswith("on"))]


@pytest.mark.parametrize(
    "names", [TRIPLES[3], ("markup in quotes", "xml", "braces")], ids=lambda names: names[0]
)
def test_pages_have_no_foreign_elements(tmp_path, names, capfd):
    robot(tmp_path, *(PAYLOADS[name] for name in names))
    source, out = str(tmp_path / "strange.toml"), tmp_path / "out"
    out.mkdir()
    commands = [
        ["view", source, "--out", f"{out}/view.html"],
        [
            "inverse",
            source,
            "--trajectory",
            "quintic",
            "--to",
            "1,1",
            "--report",
            f"{out}/i.html",
            "--out",
            f"{out}/i.csv",
        ],
        ["convert", source, f"{out}/x.urdf"],
        ["convert", source, f"{out}/x.toml"],
        ["info", source],
        ["info", source, "--json"],
    ]
    for command in commands:
        status = linkwise(command)
        assert status == 0 or (command[0] == "convert" and command[2].endswith("urdf"))  # XML cannot hold it
    said = "".join(capfd.readouterr())
    assert not {c for c in said if unicodedata.category(c) in ("Cc", "Cf")} - {"\n"}
    for page in out.glob("*.html"):
        parser = Elements()
        parser.feed(page.read_text("utf-8"))
        assert MARK not in parser.found
        assert not [name for name in parser.found if name.startswith("on")]
    assert lw.load(out / "x.toml").name == PAYLOADS[names[0]]
    given = lw.load(source)
    page = given._repr_html_() if hasattr(given, "_repr_html_") else ""
    assert f"<{MARK}" not in page


def test_figures_stay_in_their_folder(tmp_path):
    from linkwise.report.page import Figure, Report, Section

    page = Report("x")
    page.add(Section("x", [Figure(f"torque_{PAYLOADS['path']}", "<svg/>"), Figure("/etc/x", "<svg/>")]))
    (tmp_path / "a" / "b").mkdir(parents=True)
    written = page.write_figures(tmp_path / "a" / "b")
    assert {path.parent for path in written} == {tmp_path / "a" / "b"}


def test_errors_and_warnings_have_no_control_characters(tmp_path, capfd):
    name = PAYLOADS["terminal"] + PAYLOADS["bidi"] + "\n"
    for text in (model(name, name, name), model(name, "a", "b").replace("mass = 1.0", "mass = -1.0")):
        path = tmp_path / "x.toml"
        path.write_text(text, encoding="utf-8")
        assert linkwise(["info", str(path)]) == 2
        with pytest.raises(lw.ModelError) as caught:
            lw.load(path)
        assert not {c for c in str(caught.value) if unicodedata.category(c) in ("Cc", "Cf")} - {"\n"}
    said = "".join(capfd.readouterr())
    assert not {c for c in said if unicodedata.category(c) in ("Cc", "Cf")} - {"\n"}


# -- the list ---------------------------------------------------------------------------------------------------------

ROOT = Path(lw.__file__).parent
SECURITY = ROOT.parents[1] / "SECURITY.md"


@pytest.mark.skipif(not SECURITY.exists(), reason="no checkout")
def test_the_list_of_places_is_complete():
    """Every module that writes foreign text is in the table of SECURITY.md, with every function of ``foreign``."""
    text = SECURITY.read_text("utf-8").partition("## Where foreign text is written")[2]
    listed = set(re.findall(r"`([\w/]+\.py)`", text)) - {"core/foreign.py", "tests/test_foreign.py"}
    importing = re.compile(
        r"^ *from linkwise\.core import (?:[\w, ]+, )?foreign\b|^ *from linkwise\.core\.foreign import",
        re.MULTILINE,
    )
    writing = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if importing.search(path.read_text("utf-8"))
    }
    assert writing <= listed
    assert all((ROOT / name).exists() for name in listed)
    functions = {name for name in foreign.__all__ if name not in ("Code", "fill")}
    assert functions <= set(re.findall(r"`(\w+)`", text))


def test_no_other_module_escapes_text():
    """Escaping for a language is in one place."""
    others = re.compile(r"\b(html\.escape|saxutils|quoteattr|escapejs)\b")
    found = {path.name for path in ROOT.rglob("*.py") if others.search(path.read_text("utf-8"))}
    assert found == {"foreign.py", "xml_text.py"}


MARKUP_WITHOUT_FOREIGN_TEXT = {
    **dict.fromkeys(("report/sections.py", "tour/page.py"), "names of functions of Linkwise as headings"),
    **dict.fromkeys(("view/plotted.py", "view/tabs/push.py"), "numbers, and parts that are escaped before"),
    **dict.fromkeys(
        ("compiler/emit/c.py", "bench/subject.py", "embedded/online_move.py"),
        "names that are spelt, and numbers",
    ),
    **dict.fromkeys(("study/engines/chunks.py", "study/results.py", "view/scene.py"), "messages, not markup"),
}
"""Files that put values between tags or into comments of C without an escape, and why they may; the readers of robot
files in ``formats`` and ``geometry`` name tags in their messages."""


def test_modules_that_write_markup_or_comments_escape_what_they_insert():
    """Every f-string with a tag or a comment of C is in a file that has a function of ``foreign``, or is listed."""
    marked = re.compile(r"</?[a-z][\w-]*[\s>/]|/\*|\*/|^//|^#include")
    escaping = re.compile(r"\bforeign\b|\bescape\b|\bxml_text\b|\bquoted\b")
    suspect = re.compile(r"""<[a-z/{"']|/\*|\*/|["'}]/|#include""")  # where there is none, nothing is marked
    without = set()
    for path in ROOT.rglob("*.py"):
        text, name = path.read_text("utf-8"), path.relative_to(ROOT).as_posix()
        if escaping.search(text) or (
            name.startswith(("model/", "formats/", "geometry/")) and "writer" not in name
        ):
            continue
        for node in ast.walk(ast.parse(text)) if suspect.search(text) else ():
            if not isinstance(node, ast.JoinedStr) or len(node.values) < 2:
                continue
            literal = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
            if marked.search(literal):
                without.add(name)
    assert without == MARKUP_WITHOUT_FOREIGN_TEXT.keys()
