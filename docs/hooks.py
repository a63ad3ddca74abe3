"""What the site shows beside the pages of ``docs``: the reference, the examples, how to contribute, what has changed.

Links of pages to files outside ``docs`` work where the repository is read as files; here they lead to these pages.
Every page says which extra it needs. The site links to the address in the environment variable ``LINKWISE_REPOSITORY``.
"""

from __future__ import annotations

import ast
import copy
import functools
import html
import importlib
import inspect
import json
import os
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "linkwise"

# Pages of the reference, and what each documents. Packages with a public ``__all__`` get a page by themselves.
REFERENCE = {
    "robot": ("Robots", ["linkwise.Robot"]),
    "loading": (
        "Loading, saving, generating",
        [
            f"linkwise.{name}"
            for name in (
                "robots",
                "load",
                "save",
                "planar_chain",
                "general_chain",
                "quadruped",
                "random_robot",
            )
        ],
    ),
    "model": (
        "What a robot is made of",
        [
            f"linkwise.{name}"
            for name in ("Link", "Joint", "Limits", "Mimic", "Motor", "Frame", "Inertia", "Transform")
        ],
    ),
    "constraints": (
        "Constraints and couplings",
        [f"linkwise.{name}" for name in ("Weld", "Point", "Coupling", "Elastic")],
    ),
    "contact": (
        "Contact",
        [f"linkwise.{name}" for name in ("Contact", "Shape", "Ground", "Stop", "Tendon", "Scene", "Body")],
    ),
    "fluids": ("Fluids", [f"linkwise.{name}" for name in ("Fluid", "DragBody")]),
    "kernels": (
        "Kernels",
        [
            "linkwise.kernel",
            "linkwise.compiler.kernel.Kernel",
            *(
                f"linkwise.{name}"
                for name in ("sin", "cos", "sqrt", "sign", "where", "minimum", "maximum", "atan2")
            ),
            *(
                f"linkwise.{name}"
                for name in ("span", "zeros", "empty", "variable", "dot", "loop", "whole_numbers")
            ),
        ],
    ),
    "compat": ("Names of other libraries", ["linkwise.compat"]),
    "errors": ("Errors", ["linkwise.errors"]),
}
PACKAGES = {  # what packages are about, in the order of their pages
    "motion": "Motions",
    "optimal": "Optimal motion",
    "collision": "Collisions",
    "control": "Controllers",
    "simulate": "Simulation",
    "environments": "Environments for learning",
    "identify": "Identification",
    "study": "Parameter sweeps",
    "report": "Reports",
    "view": "The 3-D page",
    "tour": "First look",
    "realtime": "Real time",
    "embedded": "C packages",
    "systems": "FMI and ros2_control",
}
INTERNAL = {"frameworks", "gpu", "joint_laws", "model", "tables"}  # documented by what uses them

# Extras of pages that do not name theirs as linkwise[…]. Pages that are missing here need none.
EXTRAS = {
    "identify.md": ["identify"],
    "calibration.md": ["identify"],
    "identification.md": ["identify"],
    "view.md": ["view"],
    "which_library.md": [],
    "five_minutes.md": [],
    "your_own_robot.md": [],
    "troubleshooting.md": [],
    "cheat_sheet.md": [],
    "gpu.md": ["gpu"],
    "frameworks.md": ["frameworks"],
    "api/identify.md": ["identify"],
    "api/study.md": ["cluster"],
    "api/view.md": ["view"],
}
# pages that are about no part
WITHOUT = (
    "index",
    "changelog",
    "contributing",
    "old_pages",
    "promises",
    "records",
    "refuted",
    "gallery",
)
# how much the pages of a tab count in the search
BOOST = {"Start": 3.0, "Do": 4.0, "Understand": 1.5, "Reference": 1.0, "Project": 0.5}
API_BOOST = 0.1  # of generated pages: a word of a user leads to a guide first
SEARCH_WORDS = ROOT / "docs" / "search_words.toml"  # words of users, by the guide that they mean


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Pages that the navigation does not name go to the end of the tab Do; the reference lists its own."""
    config.repo_url = os.environ.get("LINKWISE_REPOSITORY") or None
    named = re.findall(r"'([\w/]+\.md)'", repr(config.nav))
    tabs = {title: pages for part in config.nav or [] for title, pages in part.items()}
    tabs["Do"] += [page.name for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in named]
    reference = next(part for part in tabs["Reference"] if part.get("Python") == "api/index.md")
    reference["Python"] = [
        {"Overview": "api/index.md"},
        *({title: f"api/{name}.md"} for name, (title, _) in reference_pages().items()),
    ]
    return config


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """How much a page counts in the search follows from its tab."""
    for tab in nav.items:
        for page in _pages_below(tab):
            generated = page.file.src_uri.startswith(("api/", "examples/", "notebooks/"))
            page.meta_boost = API_BOOST if generated else BOOST.get(str(tab.title), 1.0)
    return nav


@functools.cache
def search_words() -> dict[str, list[str]]:
    """Words that users look for, by page."""
    return {
        name: words.split() for name, words in tomllib.loads(SEARCH_WORDS.read_text(encoding="utf-8")).items()
    }


def _pages_below(item: Any) -> list[Page]:
    if isinstance(item, Page):
        return [item]
    return [page for child in getattr(item, "children", None) or [] for page in _pages_below(child)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, text in _pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    page.meta.setdefault("search", {"boost": getattr(page, "meta_boost", 1.0)})
    if words := search_words().get(page.file.src_uri.removesuffix(".md")):
        page.meta.setdefault("tags", words)  # which the search ranks first
    here = Path(page.file.src_uri).parent

    def moved(match: re.Match) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        if target.startswith(("http", "mailto:", "#")):
            return match[0]
        outside = (ROOT / "docs" / here / target).resolve()
        if outside.is_relative_to(ROOT / "docs"):
            return match[0]
        found = _shown_as(outside)
        if found is None:
            return words
        up = "../" * len(here.parts)
        return f"[{words}]({up}{found}{anchor})"

    linked = re.sub(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)", moved, markdown)
    return _with_extras(linked, page.file.src_uri)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """A script of our own in place of the one that the offline plugin loads from the network to run workers from files;
    names for the search and for landmarks; KaTeX where there are formulas."""
    up = "../" * page.url.count("/")
    output = output.replace(
        'data-md-component="search" role="dialog"',
        'data-md-component="search" role="dialog" aria-label="Search"',
    )
    output = _unique_landmarks(output)
    if 'class="arithmatex"' in output:
        style = f'<link rel="stylesheet" href="{up}figures/katex/katex.min.css">'
        scripts = [
            f'<script src="{up}figures/{name}"></script>' for name in ("katex/katex.min.js", "formulas.js")
        ]
        output = output.replace("</head>", f"{style}</head>").replace("</body>", f"{''.join(scripts)}</body>")
    shim = re.compile(r'<script src="https://[^"]*iframe-worker/shim"></script>')
    return shim.sub(f'<script src="{up}figures/file_search.js"></script>', output)


def _unique_landmarks(output: str) -> str:
    """Navigation with the same name twice on a page gets a number: screen readers list landmarks by their names."""
    seen: Counter[str] = Counter()

    def numbered(match: re.Match) -> str:
        seen[match[2]] += 1
        count = seen[match[2]]
        return match[0] if count == 1 else f"{match[1]}{match[2]} ({count}){match[3]}"

    return re.sub(r'(<nav\b[^>]*\baria-label=")([^"]*)(")', numbered, output)


def on_post_build(config: MkDocsConfig) -> None:
    """Fail where the reference lacks a public member, or a link within the site leads nowhere."""
    site = Path(config.site_dir)
    shown = "\n".join(page.read_text(encoding="utf-8") for page in sorted((site / "api").glob("*.html")))
    missing = [name for name in _public_members() if f'id="{name}"' not in shown]
    if missing:
        raise PluginError(f"the reference lacks {', '.join(missing[:20])}")
    broken = _broken_links(site)
    if broken:
        raise PluginError(f"links that lead nowhere: {'; '.join(broken[:20])}")


def _broken_links(site: Path) -> list[str]:
    """'page: link' of every link or picture of the built site whose file or anchor does not exist."""
    pages = {page: page.read_text(encoding="utf-8") for page in sorted(site.rglob("*.html"))}
    anchors = {page: set(re.findall(r'\bid="?([^\s">]+)', text)) for page, text in pages.items()}
    broken = []
    for page, text in pages.items():
        if page.name == "404.html":
            continue  # shown at any address, so its links are absolute
        for link in sorted(set(re.findall(r'\b(?:href|src)="?([^\s">]+)', text))):
            if re.match(r"[a-z]+:|//", link):
                continue
            address, _, anchor = html.unescape(unquote(link)).partition("#")
            target = (page.parent / address.partition("?")[0]).resolve() if address else page
            target = target / "index.html" if target.is_dir() else target
            known = target.exists() and (not anchor or target not in anchors or anchor in anchors[target])
            if not known and anchor != "__skip":
                broken.append(f"{page.relative_to(site)}: {link}")
    return broken


def extras_of(name: str, text: str) -> list[str]:
    """The extras that a page needs: those of the table, else those that its text names."""
    if name in EXTRAS:
        return EXTRAS[name]
    return sorted(set(re.findall(r"linkwise\[(\w+)\]", text)) - {"all", "test", "dev", "docs"})


def _with_extras(text: str, name: str) -> str:
    """The page with a line under its heading that says which extra it needs."""
    heading = re.match(r"\s*# .+\n", text)
    if name.removesuffix(".md") in WITHOUT or heading is None:
        return text
    found = extras_of(name, text)
    commands = " or ".join(f'`pip install "linkwise[{extra}]"`' for extra in found)
    line = f"Needs {commands}." if found else "Needs no extra."
    return f'{heading[0]}\n<p class="extra" markdown>{line}</p>\n{text[heading.end() :]}'


def _shown_as(path: Path) -> str | None:
    """The page of the site that shows a file of the repository; None: it is not shown."""
    if path.parent == ROOT / "examples" and path.suffix == ".py":
        return f"examples/{path.stem}.md"
    known = {
        "examples": "examples/index.md",
        "examples/notebooks": "notebooks/index.md",
        "CONTRIBUTING.md": "contributing.md",
        "CHANGELOG.md": "changelog.md",
        "tests/promises.toml": "promises.md",
    }
    return known.get(str(path.relative_to(ROOT))) if path.is_relative_to(ROOT) else None


def reference_pages() -> dict[str, tuple[str, list[str]]]:
    """Name of every page of the reference: its title and what it documents."""
    pages = dict(REFERENCE)
    for path in sorted(SOURCE.glob("*/__init__.py"), key=_place):
        name = path.parent.name
        if name not in INTERNAL and _public(f"linkwise.{name}"):
            more = {"report": ["linkwise.report.sections"], "study": ["linkwise.open_study"]}.get(name, [])
            more += [f"linkwise.{name}.{each}.{each}" for each in _hidden(f"linkwise.{name}")]
            pages[name] = (f"linkwise.{name}", [f"linkwise.{name}", *more])
    last = ("compat", "errors")
    return {name: pages[name] for name in (*(n for n in pages if n not in last), *last)}


def _place(path: Path) -> int:
    names = list(PACKAGES)
    return names.index(path.parent.name) if path.parent.name in names else len(names)


def _pages() -> dict[str, str]:
    pages = {"contributing.md": _adopted("CONTRIBUTING.md"), "changelog.md": _adopted("CHANGELOG.md")}
    scripts = sorted((ROOT / "examples").glob("[0-9]*.py"))
    lines = []
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        summary = first_sentence(ast.get_docstring(ast.parse(text)) or script.stem)
        pages[f"examples/{script.stem}.md"] = f"# {script.name}\n\n```python\n{text}```\n"
        lines.append(f"| [{script.name}]({script.stem}.md) | {summary} |")
    pages |= _notebooks() | {"promises.md": _promises()}
    head = ["# Examples", "", "Scripts that check themselves.", "", "| script | what it shows |", "|---|---|"]
    pages["examples/index.md"] = "\n".join([*head, *lines, ""])
    shown = reference_pages()
    index = [
        f"| [{title}]({name}.md) | {PACKAGES.get(name, ', '.join(f'`{m}`' for m in modules))} |"
        for name, (title, modules) in shown.items()
    ]
    pages["api/index.md"] = "\n".join(
        ["# Reference of the Python interface", "", "| page | about |", "|---|---|", *index, ""]
    )
    for name, (title, modules) in shown.items():
        blocks = [f"::: {module}\n{_options(module)}" for module in modules]
        pages[f"api/{name}.md"] = f"# {title}\n\n" + "\n".join(blocks)
    return pages


def _promises() -> str:
    """The page of what these pages promise, and the tests of it."""
    sys.path.insert(0, str(ROOT / "tests"))
    return importlib.import_module("promises").page()


def _notebooks() -> dict[str, str]:
    """The stored notebooks with their outputs as pages, and a list of them."""
    pages, lines = {}, []
    folder = ROOT / "examples" / "notebooks"
    for path in sorted(folder.glob("*.ipynb"), key=lambda path: int(path.stem.partition("_")[0])):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        pages[f"notebooks/{path.stem}.md"] = "\n\n".join(_cell(cell) for cell in cells) + "\n"
        title, _, summary = "".join(cells[0]["source"]).removeprefix("# ").partition("\n")
        lines.append(f"| [{title}]({path.stem}.md) | {first_sentence(summary.strip())} |")
    head = "# Notebooks\n\nThe files of `examples/notebooks`, with their results. Pages in frames need no server.\n"
    pages["notebooks/index.md"] = "\n".join([head, "| notebook | what it shows |", "|---|---|", *lines, ""])
    return pages


def _cell(cell: dict[str, Any]) -> str:
    """A cell of a notebook as Markdown: its text, or its code and what that gave."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    parts, printed = [f"```python\n{source}\n```"], ""
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            printed += "".join(output["text"])
            continue
        data = output["data"]
        for kind in ("text/html", "image/svg+xml"):
            if kind in data:
                parts.append(f'<div class="output">{_one_line("".join(data[kind]))}</div>')
                break
        else:
            parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    if printed:
        parts.insert(1, f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(parts)


def _one_line(markup: str) -> str:
    """Markup without line ends, which Markdown would read as its own; lines of a page inside a frame stay."""
    frame = re.search(r'srcdoc="[^"]*"', markup)
    if frame:
        return markup.replace(frame[0], frame[0].replace("\n", "&#10;"))
    return " ".join(line.strip() for line in markup.splitlines())


def first_sentence(text: str) -> str:
    """The first sentence of a text, whole, in one line."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    found = re.match(r".+?[.?!](?=\s+[A-Z]|$)", paragraph)
    return found[0] if found else paragraph


def _adopted(name: str) -> str:
    """A file of the repository's root as a page: its links to docs lose that folder."""
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")


def _options(module: str) -> str:
    """For a package, the names of its ``__all__``, wherever they are defined."""
    if not _is_package(module):
        return ""
    names = [name for name in _public(module) if name not in _hidden(module)]
    names = [name for name in names if not inspect.ismodule(_found(f"{module}.{name}"))]
    listed = "".join(f"          - {name}\n" for name in names)
    return f"    options:\n      members:\n{listed}" if names else ""


def _hidden(module: str) -> list[str]:
    """Public functions with the name of the file that defines them: static analysis finds the file instead."""
    folder = ROOT / "src" / Path(*module.split("."))
    names = [name for name in _public(module) if (folder / f"{name}.py").exists()]
    return [name for name in names if not inspect.ismodule(_found(f"{module}.{name}"))]


def _is_package(module: str) -> bool:
    return (ROOT / "src" / Path(*module.split(".")) / "__init__.py").exists()


def _public(module: str) -> list[str]:
    path = ROOT / "src" / Path(*module.split(".")) / "__init__.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(node.value) if name[0] != "_"]
    return []


# -- is the reference whole? ------------------------------------------------------------------------------------------


def _public_members() -> list[str]:
    """Paths of what must be in the reference: public names, and public members of Robot, inherited ones too."""
    import linkwise

    found = [f"linkwise.Robot.{name}" for name in dir(linkwise.Robot) if name[0] != "_"]
    for name in linkwise.__all__:
        part = "errors." if hasattr(linkwise.errors, name) else ""
        if name[0] != "_" and not _is_package(f"linkwise.{name}"):
            found.append(f"linkwise.{part}{name}")
    for _, (package, *_) in reference_pages().values():
        if _is_package(package):
            names = [name for name in _public(package) if not inspect.ismodule(_found(f"{package}.{name}"))]
            hidden = _hidden(package)
            found += [f"{package}.{name}.{name}" if name in hidden else f"{package}.{name}" for name in names]
    return found


def _found(path: str) -> Any:
    """The object with this path at run time; None where there is none."""
    found: Any = None
    for number, name in enumerate(names := path.split(".")):
        module = ".".join(names[: number + 1])
        inside = None if found is None else inspect.getattr_static(found, name, None)
        if inside is None:
            try:
                inside = importlib.import_module(module)
            except ImportError:
                inside = getattr(found, name, None)
        if inside is None:
            return None
        found = inside
    return found


class RuntimeDocstrings(griffe.Extension):
    """Docstrings as they are at run time: decorators add descriptions of arguments that many functions share."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        found = _found(func.path)
        text = inspect.cleandoc(getattr(found, "__doc__", None) or "")
        if text and func.docstring is not None:
            func.docstring.value = text

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Methods that a class takes from a module (``show = conveniences.show``) become functions of the class."""
        owner = pkg["robot.robot.Robot"]
        for name, member in list(owner.members.items()):
            value = str(member.value) if isinstance(member, griffe.Attribute) else ""
            module, dot, function = value.partition(".")
            if not dot or not function.isidentifier() or f"robot.{module}" not in _modules(pkg, "robot"):
                continue
            method = copy.copy(pkg[f"robot.{module}.{function}"])
            method.name, method.lineno = name, member.lineno
            method.parameters = griffe.Parameters(*(copy.copy(each) for each in method.parameters))
            method.parameters["self"].annotation = None
            owner.set_member(name, method)


def _modules(pkg: griffe.Module, part: str) -> set[str]:
    """Names of the modules of a part."""
    return {f"{part}.{name}" for name in pkg[part].modules}
