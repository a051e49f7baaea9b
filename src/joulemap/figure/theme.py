"""How figures look: colours that people of every colour vision tell apart, on a light or a dark page."""

from __future__ import annotations

from typing import Any, Final, Literal

Theme = Literal["light", "dark"]

THEMES: Final[tuple[Theme, ...]] = ("light", "dark")

FONT: Final = "sans-serif"

PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Source: Okabe and Ito, Color Universal Design (2008), its black replaced by a grey that shows on both pages."""

INK: Final[dict[Theme, str]] = {"light": "#1a1a1a", "dark": "#f0f0f0"}
FAINT: Final[dict[Theme, str]] = {"light": "#d9d9d9", "dark": "#4a4a4a"}
PAGE: Final[dict[Theme, str]] = {"light": "#ffffff", "dark": "#15181c"}

SYMBOLS: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "stroke")


def configure(theme: Theme = "light") -> dict[str, Any]:
    """Return Vega-Lite's `config` of a theme: every colour, font and line of a figure that has none of its own."""
    ink, faint, page = INK[theme], FAINT[theme], PAGE[theme]
    return {
        "background": page,
        "font": FONT,
        "padding": 8,
        "range": {
            "category": [*PALETTE, ink],
            "symbol": list(SYMBOLS),
            "heatmap": {"scheme": "cividis"},
            "ramp": {"scheme": "cividis"},
        },
        "title": {"anchor": "start", "color": ink, "subtitleColor": ink, "fontSize": 15, "subtitleFontSize": 12,
                  "subtitlePadding": 4, "offset": 12},
        "axis": {"labelColor": ink, "titleColor": ink, "gridColor": faint, "domainColor": ink, "tickColor": ink,
                 "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 220},
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": 12},
        "legend": {"labelColor": ink, "titleColor": ink, "labelFontSize": 11, "titleFontSize": 12,
                   "titleFontWeight": "normal", "labelLimit": 220},
        "text": {"color": ink, "fontSize": 11},
        "rule": {"color": ink},
        "line": {"strokeWidth": 2},
        "view": {"stroke": faint},
        "style": {"ink": {"fill": ink, "stroke": ink}, "frame": {"stroke": page},
                  "on-light": {"fill": "#000000"}, "on-dark": {"fill": "#ffffff"}},
        "locale": {"number": {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["", " USD"]}},
    }  # fmt: skip
