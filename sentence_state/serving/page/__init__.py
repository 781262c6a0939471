"""The page at /: HTML, CSS and small modules as they are in this folder, read once."""

from __future__ import annotations

from importlib.resources import files

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Path -> content and media type, for every file of the page."""
    found = {}
    for file in files(__name__).iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in KINDS:
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            found[path] = (file.read_bytes(), KINDS[suffix])
    return found
