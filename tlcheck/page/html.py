"""A page as one HTML file that needs nothing else and asks no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from tlcheck import __version__
from tlcheck.page.pack import embedded, packed
from tlcheck.page.shown import Page

_STYLES = ("page.css", "code.css")
_SCRIPTS = ("dom.js", "frame.js", "data.js", "code.js", "pictures.js", "list.js", "case.js", "page.js")


def render(page: Page) -> str:
    """The file."""
    return document(page.title, page.verdict, page.tone, _BODY, embedded(packed(page)), _STYLES, _SCRIPTS)


def document(
    title: str, verdict: str, tone: str, body: str, data: str, styles: Sequence[str], scripts: Sequence[str]
) -> str:
    """A file that shows `data` by means of assets. body: HTML of ours. data: see `pack.embedded`.

    The policy in it lets only its own script and style run, whatever a kernel may be called.
    """
    style, script = _joined(styles), _joined(scripts)
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'"
    return _TEMPLATE.format(
        policy=escape(policy, quote=False),
        title=escape(title),
        verdict=escape(verdict),
        tone=tone,
        style=style,
        script=script,
        body=body,
        data=data,
        version=escape(__version__),
    )


def _joined(names: Sequence[str]) -> str:
    folder = files("tlcheck.page") / "assets"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


_TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="tlcheck {version}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the case</a>
<header>
<h1><a id="home" href="#">{title}</a></h1>
<p id="verdict" class="tone-{tone}">{verdict}</p>
<button id="theme" type="button" title="light or dark (t)">theme</button>
<button id="help" type="button" title="keys (?)">?</button>
</header>
{body}
<script type="application/octet-stream" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""

_BODY = """\
<div id="columns">
<nav aria-label="cases">
<input id="search" type="search" placeholder="search cases and code  /" aria-label="search cases and code"
 autocomplete="off" spellcheck="false">
<div id="filters" role="group" aria-label="filters"></div>
<p id="shown" role="status"></p>
<ol id="cases"></ol>
</nav>
<main id="main" tabindex="-1"><noscript>This page needs JavaScript, which it runs without any network.</noscript></main>
</div>
<dialog id="sheet"></dialog>"""
