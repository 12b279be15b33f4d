"""SVG elements as text."""

from __future__ import annotations

from html import escape


def text(x: float, y: float, words: str, *, kind: str, anchor: str = "start") -> str:
    """Words at a point; `kind` is a class of the page's style."""
    place = f'text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}"'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'


def line(path: str, colour: str, *, width: float = 1.8, dashes: str = "none") -> str:
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
        f'stroke-dasharray="{dashes}"/>'
    )


def area(path: str, colour: str, *, opacity: float = 1.0) -> str:
    return f'<path d="{path}" fill="{colour}" fill-opacity="{opacity}"/>'


def rectangle(x: float, y: float, width: float, height: float, colour: str) -> str:
    return area(f"M{x:.1f},{y:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}Z", colour)
