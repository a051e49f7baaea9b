"""Wording that readers stumble over."""

from __future__ import annotations

import re
from typing import Final

UNCLEAR: Final = re.compile(
    r"""\b(?:B|bytes?|MACs?|operations|frames|images|tokens|samples|requests|outputs|TOPS|clocks|W|[KM]i?B)
    [ ]a[ ](?:clock|second|watt|core|chip|card|engine|lane|tile|image|token|step|MAC)\b
    |\b(?:board|network|model|family|CPU|chip)[ ]left[ ]out\b|"(?:the[ ]same|as[ ]above)\b|\(as[ ]above\)
    |\bas[ ]remembered\b|\bin[ ]place[ ]of\b|\bnot[ ]told\b|\bpublishes[ ](?:no|neither)\b|\berrs?[ ]by\b
    |"(?:what|whether|that[ ]of|those[ ]of)\b|\btaken[ ](?:to[ ]be|as)\b|\bat[ ]work\b|\bof[ ](?:its|their)[ ]own\b
    |\bwhat[ ]the[ ]price[ ]buys\b""",
    re.VERBOSE,
)
"""Phrases in texts of data files that readers marked: write `recalled`, `per clock`, `held out`, or name the source."""
