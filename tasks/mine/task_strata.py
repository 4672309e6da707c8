"""The strata of a task: what a report can split its results by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

_LANGUAGES = {
    "bash": "sh bash zsh fish",
    "c": "c h",
    "clojure": "clj cljs cljc edn",
    "cpp": "cc cpp cxx hh hpp hxx ipp",
    "csharp": "cs csx",
    "css": "css scss sass less",
    "dart": "dart",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "fortran": "f f90 f95",
    "fsharp": "fs fsx",
    "go": "go",
    "groovy": "groovy gradle",
    "haskell": "hs lhs",
    "html": "html htm jinja j2",
    "java": "java",
    "javascript": "js jsx mjs cjs",
    "julia": "jl",
    "kotlin": "kt kts",
    "lua": "lua",
    "ocaml": "ml mli",
    "perl": "pl pm t",
    "php": "php",
    "powershell": "ps1 psm1",
    "python": "py pyi pyx pxd",
    "r": "r",
    "ruby": "rb rake",
    "rust": "rs",
    "scala": "scala sc",
    "sql": "sql",
    "swift": "swift",
    "typescript": "ts tsx mts cts",
    "vue": "vue svelte",
    "zig": "zig",
}
_LANGUAGE_OF = {
    extension: language
    for language, extensions in _LANGUAGES.items()
    for extension in extensions.split()
}
_DOCUMENT_EXTENSIONS = frozenset(
    ["adoc", "asciidoc", "md", "mdx", "markdown", "org", "pod", "rst", "tex", "textile", "txt"]
)
_DOCUMENT_FOLDERS = frozenset({"doc", "docs", "documentation", "man", "website"})
_TEST_FOLDERS = frozenset(
    {"__tests__", "spec", "specs", "test", "testdata", "testing", "tests", "e2e"}
)
_TEST_NAME = re.compile(
    r"(?:test_.*|.*_tests?|conftest|.*[.-](?:test|spec)|.*_spec|.*Tests?|.*IT)\.[A-Za-z0-9]+"
)
_KINDS = ("code", "test", "docs", "other")


def describe_strata(query: str, items: Sequence[str]) -> dict[str, str]:
    """The strata of a task whose gold items are paths: what most of them are decides.

    Ties go to the language first in the alphabet, and to code before test before docs. `only` is
    "docs" or "test" where all of them are.
    """
    kinds = [find_kind(item) for item in items]
    return {
        "names_gold": name_gold(query, items),
        "files": "single" if len(items) == 1 else "multi",
        "language": _commonest([find_language(item) for item in items]),
        "kind": _commonest(kinds, _KINDS),
        "only": kinds[0] if kinds[0] in ("docs", "test") and len(set(kinds)) == 1 else "no",
    }


def name_gold(query: str, items: Iterable[str]) -> str:
    """Whether `query` names one of `items`: "path", "basename" or "no"."""
    named = "no"
    for item in items:
        basename = item[item.rfind("/") + 1 :]
        if basename not in query:
            continue
        if item in query and _is_word(query, item):
            return "path"
        if named == "no" and _is_word(query, basename):
            named = "basename"
    return named


@lru_cache(maxsize=1 << 16)
def find_language(path: str) -> str:
    """The language of a file by its extension, "other" where it tells none."""
    return _LANGUAGE_OF.get(_extension(path), "other")


@lru_cache(maxsize=1 << 16)
def find_kind(path: str) -> str:
    """Whether a file is "test", "docs", "code" or "other", by its folders, name and extension."""
    *folders, name = path.split("/")
    lowered = {folder.lower() for folder in folders}
    extension = _extension(path)
    if lowered & _TEST_FOLDERS or _TEST_NAME.fullmatch(name):
        return "test"
    if lowered & _DOCUMENT_FOLDERS or _is_document(path, extension):
        return "docs"
    return "code" if extension in _LANGUAGE_OF else "other"


def _is_document(path: str, extension: str) -> bool:
    is_list = extension == "txt" and ("requirements" in path or path.endswith("CMakeLists.txt"))
    return extension in _DOCUMENT_EXTENSIONS and not is_list


def _extension(path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and stem else ""


def _is_word(query: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", query) is not None


def _commonest(values: Sequence[str], order: Sequence[str] = ()) -> str:
    if len(set(values)) == 1:
        return values[0]
    counts = Counter(values)
    rank = {value: at for at, value in enumerate(order)}
    return min(counts, key=lambda value: (-counts[value], rank.get(value, 0), value))
