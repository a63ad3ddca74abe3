"""What the site shows beside the pages of ``docs``: the reference, the examples, how to contribute, what has changed.

Links of pages to files outside ``docs`` work where the repository is read as files; here they lead to these pages.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]

# Pages of the reference, and what each documents.
REFERENCE = {
    "robot": ("Robots", ["linkwise.Robot"]),
    "loading": (
        "Loading, saving, generating",
        [
            f"linkwise.{name}"
            for name in ("robots", "load", "save", "planar_chain", "general_chain", "random_robot")
        ],
    ),
    "model": (
        "What a robot is made of",
        [
            f"linkwise.{name}"
            for name in ("Link", "Joint", "Limits", "Mimic", "Frame", "Inertia", "Transform")
        ],
    ),
    "kernels": ("Kernels", ["linkwise.kernel", "linkwise.compiler.kernel.Kernel"]),
    "motion": ("Motions", ["linkwise.motion"]),
    "collision": ("Collisions", ["linkwise.collision"]),
    "control": ("Controllers", ["linkwise.control"]),
    "simulate": ("Simulation", ["linkwise.simulate"]),
    "identify": ("Identification", ["linkwise.identify"]),
    "study": ("Studies", ["linkwise.study"]),
    "report": ("Reports", ["linkwise.report", "linkwise.report.sections"]),
    "view": ("The 3-D page", ["linkwise.view"]),
    "compat": ("Names of other libraries", ["linkwise.compat"]),
    "errors": ("Errors", ["linkwise.errors"]),
}
PACKAGES = (
    "motion",
    "collision",
    "control",
    "simulate",
    "identify",
    "study",
    "report",
    "view",
)  # their public names are re-exports


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Guides that the navigation does not name yet stand behind those that it does."""
    named = re.findall(r"'([\w/]+\.md)'", repr(config.nav))
    guides = next(part["Guides"] for part in config.nav or [] if "Guides" in part)
    guides += [page.name for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in named]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, text in _pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
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

    return re.sub(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)", moved, markdown)


def _shown_as(path: Path) -> str | None:
    """The page of the site that shows a file of the repository; None: it is not shown."""
    if path.parent == ROOT / "examples" and path.suffix == ".py":
        return f"examples/{path.stem}.md"
    known = {
        "examples": "examples/index.md",
        "CONTRIBUTING.md": "contributing.md",
        "CHANGELOG.md": "changelog.md",
    }
    return known.get(str(path.relative_to(ROOT))) if path.is_relative_to(ROOT) else None


def _pages() -> dict[str, str]:
    pages = {"contributing.md": _adopted("CONTRIBUTING.md"), "changelog.md": _adopted("CHANGELOG.md")}
    scripts = sorted((ROOT / "examples").glob("[0-9]*.py"))
    lines = []
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        summary = (ast.get_docstring(ast.parse(text)) or script.stem).splitlines()[0]
        pages[f"examples/{script.stem}.md"] = f"# {script.name}\n\n```python\n{text}```\n"
        lines.append(f"| [{script.name}]({script.stem}.md) | {summary} |")
    pages["examples/index.md"] = "\n".join(
        [
            "# Examples",
            "",
            "Scripts that check themselves.",
            "",
            "| script | what it shows |",
            "|---|---|",
            *lines,
            "",
        ]
    )
    shown = {name: row for name, row in REFERENCE.items() if _exists(row[1][0])}
    index = [
        f"| [{title}]({name}.md) | {', '.join(f'`{m}`' for m in modules)} |"
        for name, (title, modules) in shown.items()
    ]
    pages["api/index.md"] = "\n".join(["# Reference", "", "| page | of |", "|---|---|", *index, ""])
    for name, (title, modules) in shown.items():
        blocks = [f"::: {module}\n{_options(module)}" for module in modules]
        pages[f"api/{name}.md"] = f"# {title}\n\n" + "\n".join(blocks)
    return pages


def _adopted(name: str) -> str:
    """A file of the repository's root as a page: its links to docs lose that folder."""
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")


def _options(module: str) -> str:
    """For a package, the names of its ``__all__``, wherever they are defined."""
    if module.rpartition(".")[2] not in PACKAGES or module.count(".") > 1:
        return ""
    names = _public(module)
    listed = "".join(f"          - {name}\n" for name in names)
    return f"    options:\n      members:\n{listed}" if names else ""


def _public(module: str) -> list[str]:
    path = ROOT / "src" / Path(*module.split(".")) / "__init__.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(node.value) if name[0] != "_"]
    return []


def _exists(module: str) -> bool:
    name = module.split(".")[1]
    return name not in PACKAGES or (ROOT / "src" / "linkwise" / name / "__init__.py").exists()
