"""Randomized trials that attempt to lose data, to block users or to run foreign code (`make campaign`).

A kind is one method. Each of its trials has its own random numbers, so that kind, seed and number reproduce it. Trials
run in workers, processes that may crash or hang without ending the campaign.
"""

import sys
from pathlib import Path

if (SUPPORT := str(Path(__file__).parents[1] / "support")) not in sys.path:  # pytest has it; `python -m campaign` not
    sys.path.append(SUPPORT)
