"""Palette: the colours of every surface (terminal, figures, HTML, page), on light and dark backgrounds.

    better     the best value, a value tied with it, and less of what is spent
    worse      more of what is spent
    unknown    what was never measured, or no counter explains
    a hue      a chip, or one of several parts without an order

A sign, letter, shape or word always says the same. Hues are Okabe and Ito's without the two that are near `better` and
`worse`, then hues of equal contrast on both backgrounds. Source: Okabe and Ito, Color Universal Design (2008).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from joulemap.system.record import frozen

Theme = Literal["light", "dark"]

THEMES: Final[tuple[Theme, ...]] = ("light", "dark")


@frozen
class Colour:
    """Colour of marks and areas."""

    fill: str
    """Hexadecimal code, legible on light and dark backgrounds."""
    terminal: int
    """Nearest of a terminal's 256 colours."""


HUES: Final[Mapping[str, Colour]] = {
    "blue": Colour("#0072B2", 32),
    "orange": Colour("#E69F00", 178),
    "pink": Colour("#CC79A7", 175),
    "sky": Colour("#56B4E9", 74),
    "violet": Colour("#785EF0", 99),
    "olive": Colour("#999933", 143),
    "brown": Colour("#9C6B45", 137),
    "sand": Colour("#DDCC77", 186),
    "magenta": Colour("#AA4499", 133),
    "slate": Colour("#5B7A99", 67),
}
"""Hues in the order in which chips get them; figures of other series in a report begin at the end."""

COLOURS: Final[Mapping[str, Colour]] = {
    "better": Colour("#009E73", 36),
    "worse": Colour("#D55E00", 166),
    "unknown": Colour("#999999", 245),
    "rose": Colour("#B0607D", 132),
    **HUES,
}
"""All colours of marks and areas."""

CATEGORY_COLOURS: Final[Mapping[str, str]] = {
    "compute": "blue",
    "register": "orange",
    "unit_memory": "pink",
    "chip_memory": "sky",
    "on_chip_memory": "sky",
    "interconnect": "olive",
    "off_chip_memory": "violet",
    "control": "sand",
    "static": "brown",
    "board": "rose",
    "unattributed": "unknown",
    "communication": "magenta",
    "host": "slate",
}
"""Energy category -> name of its colour."""

PAGE: Final[Mapping[str, Mapping[str, str]]] = {
    "light": {
        "page": "#ffffff",
        "ink": "#1a1a1a",
        "soft": "#595959",
        "faint": "#d9d9d9",
        "tint": "#f4f6f8",
        "link": "#005a8c",
        "better": "#00674a",
        "worse": "#a33c00",
        "unknown": "#6b6b6b",
    },
    "dark": {
        "page": "#15181c",
        "ink": "#f0f0f0",
        "soft": "#b4b9bf",
        "faint": "#4a4a4a",
        "tint": "#20252b",
        "link": "#7cc4f2",
        "better": "#4fd0a5",
        "worse": "#ff9d66",
        "unknown": "#a3a3a3",
    },
}
"""Theme -> colours of texts and surfaces, with enough contrast for letters."""

RAMP: Final = ("#fdf1e7", "#f5b98c", "#D55E00", "#7a3300")
"""Shades of a heat map from the lowest value to the largest."""


def write_variables() -> str:
    """Return the palette as CSS variables: `--better` for letters, `--fill-better` for areas, `--part-static` for an
    energy category.
    """
    areas = {f"fill-{name}": one.fill for name, one in COLOURS.items()}
    areas |= {f"part-{name}": COLOURS[colour].fill for name, colour in CATEGORY_COLOURS.items()}
    fills = "".join(f" --{name}: {fill};" for name, fill in areas.items())
    light, dark = ("".join(f" --{name}: {one};" for name, one in PAGE[theme].items()) for theme in THEMES)
    return f":root {{{light}{fills} }}\n@media (prefers-color-scheme: dark) {{ :root {{{dark} }} }}\n"


def begin_colour(name: str) -> str:
    """Return the escape sequence that begins a colour on a terminal."""
    return f"\x1b[38;5;{COLOURS[name].terminal}m"
