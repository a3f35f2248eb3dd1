"""Write the portal's libraries: the editor as one module, the charts, and the license of every package in them.

`make portal-libraries` runs it, after a version below was changed; the results are part of the repository, so that the
portal runs without a build step and without other hosts. A test compares the versions with those in libraries.json.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "asterism" / "apis" / "portal" / "static" / "libraries"
LIST: Final = FOLDER / "libraries.json"
LICENSES: Final = FOLDER / "LICENSES.txt"

# Exact versions, those of indirect dependencies as well: the same bundle whenever it is made.
PACKAGES: Final = {
    "@codemirror/autocomplete": "6.20.4",
    "@codemirror/commands": "6.11.1",
    "@codemirror/lang-javascript": "6.2.5",
    "@codemirror/lang-json": "6.0.2",
    "@codemirror/lang-sql": "6.10.0",
    "@codemirror/language": "6.13.1",
    "@codemirror/lint": "6.9.7",
    "@codemirror/search": "6.7.2",
    "@codemirror/state": "6.7.6",
    "@codemirror/streamparser": "6.0.0",
    "@codemirror/view": "6.43.15",
    "@lezer/common": "1.5.5",
    "@lezer/highlight": "1.2.5",
    "@lezer/javascript": "1.5.6",
    "@lezer/json": "1.0.3",
    "@lezer/lr": "1.4.12",
    "@marijn/find-cluster-break": "1.0.4",
    "crelt": "1.0.7",
    "style-mod": "4.1.4",
    "uplot": "1.6.32",
    "w3c-keyname": "2.2.8",
}
# Makes the bundle and is no part of it.
BUNDLER: Final = ("esbuild", "0.28.2")

# Exports of the bundle, by package: those that static/editor.js imports, and no more, because the rest is left out.
EXPORTS: Final = {
    "@codemirror/autocomplete": ("autocompletion", "closeBrackets", "closeBracketsKeymap", "completionKeymap"),
    "@codemirror/commands": ("defaultKeymap", "history", "historyKeymap"),
    "@codemirror/lang-javascript": ("javascript",),
    "@codemirror/lang-json": ("json",),
    "@codemirror/lang-sql": ("SQLDialect",),
    "@codemirror/language": (
        "HighlightStyle",
        "LanguageSupport",
        "bracketMatching",
        "foldGutter",
        "foldKeymap",
        "indentOnInput",
        "indentUnit",
        "syntaxHighlighting",
    ),
    "@codemirror/lint": ("lintKeymap", "setDiagnostics"),
    "@codemirror/search": ("highlightSelectionMatches", "search", "searchKeymap"),
    "@codemirror/state": ("Compartment", "EditorState", "Prec"),
    "@codemirror/view": ("EditorView", "drawSelection", "highlightSpecialChars", "keymap", "lineNumbers"),
    "@lezer/highlight": ("tags",),
}
EDITOR: Final = "codemirror.js"
# Files that are copied as they are: where they stand in the package, and their name here.
COPIES: Final = {"uplot": (("dist/uPlot.esm.js", "uplot.js"), ("dist/uPlot.min.css", "uplot.css"))}
HEAD: Final = "/* CodeMirror, bundled by scripts/portal_libraries.py. The licenses are in LICENSES.txt. */"


@dataclass(frozen=True, slots=True)
class Library:
    """A package, and the files here that hold code of it."""

    name: str
    version: str
    license: str
    files: tuple[str, ...]


def write() -> None:
    with tempfile.TemporaryDirectory() as name:
        workplace = Path(name)
        _install(workplace)
        FOLDER.mkdir(parents=True, exist_ok=True)
        files_of = {package: [EDITOR] for package in _bundle(workplace)}
        for package, copies in COPIES.items():
            for source, target in copies:
                shutil.copyfile(workplace / "node_modules" / package / source, FOLDER / target)
                files_of.setdefault(package, []).append(target)
        libraries = [_library(workplace, package, files) for package, files in sorted(files_of.items())]
        texts = [_license_text(workplace, library) for library in libraries]
    LIST.write_text(json.dumps([_row(library) for library in libraries], indent=2) + "\n", encoding="utf-8")
    LICENSES.write_text("\n".join(texts), encoding="utf-8")


def _install(workplace: Path) -> None:
    wanted = {**PACKAGES, BUNDLER[0]: BUNDLER[1]}
    manifest = {"name": "portal-libraries", "version": "0.0.0", "private": True, "dependencies": wanted}
    (workplace / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    _run(workplace, "npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund")


def _bundle(workplace: Path) -> set[str]:
    """Bundle the editor and return the packages that are in it."""
    entry = "".join(f'export {{ {", ".join(names)} }} from "{package}";\n' for package, names in EXPORTS.items())
    (workplace / "entry.js").write_text(entry, encoding="utf-8")
    _run(
        workplace,
        "npx",
        "esbuild",
        "entry.js",
        "--bundle",
        "--minify",
        "--format=esm",
        "--target=es2022",
        "--charset=utf8",
        "--legal-comments=none",
        f"--banner:js={HEAD}",
        "--metafile=inputs.json",
        f"--outfile={FOLDER / EDITOR}",
        "--log-level=warning",
    )
    inputs = json.loads((workplace / "inputs.json").read_text(encoding="utf-8"))["inputs"]
    return {_package_of(path) for path in inputs if path.startswith("node_modules/")}


def _package_of(path: str) -> str:
    parts = path.removeprefix("node_modules/").split("/")
    return "/".join(parts[:2]) if parts[0].startswith("@") else parts[0]


def _library(workplace: Path, package: str, files: list[str]) -> Library:
    manifest = json.loads((workplace / "node_modules" / package / "package.json").read_text(encoding="utf-8"))
    version = manifest["version"]
    # An indirect dependency that is missing above would change from day to day.
    if PACKAGES.get(package) != version:
        raise SystemExit(f"{package} {version} is in the libraries, but not in PACKAGES. Add it there.")
    return Library(package, version, manifest["license"], tuple(files))


def _license_text(workplace: Path, library: Library) -> str:
    text = (workplace / "node_modules" / library.name / "LICENSE").read_text(encoding="utf-8").strip()
    line = "=" * 80
    return (
        f"{line}\n{library.name} {library.version} ({library.license}): {', '.join(library.files)}\n{line}\n\n{text}\n"
    )


def _row(library: Library) -> dict[str, object]:
    return {
        "name": library.name,
        "version": library.version,
        "license": library.license,
        "files": list(library.files),
    }


def _run(workplace: Path, *command: str) -> None:
    subprocess.run(command, cwd=workplace, check=True)


if __name__ == "__main__":
    write()
