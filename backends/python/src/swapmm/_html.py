# SPDX-License-Identifier: Apache-2.0
"""Pieces of HTML for notebooks."""

from __future__ import annotations

from html import escape
from typing import Iterable, Optional, Sequence


def table(rows: Iterable[Sequence[object]], header: Optional[Sequence[object]] = None) -> str:
    """A table of texts, which are escaped."""

    def line(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    head = f"<thead>{line(header, 'th')}</thead>" if header is not None else ""
    return f"<table>{head}<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"


def picture(svg: str) -> str:
    """An SVG document as a part of the page, so that a browser shows the names of what is under the pointer."""
    return f'<div style="overflow-x: auto">{svg}</div>'
