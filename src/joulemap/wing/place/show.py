"""Words for placements: the decision, and why a mixture of devices wins or loses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.ask.fact import Choice, Entry, Facts, Refusal
from joulemap.show.caveat import show_range
from joulemap.show.choice import MOST_WHY, describe_choices
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.template import Template
from joulemap.show.run_name import join_names, name_run
from joulemap.show.word import Words

SOLVER: Final = "the extra `solver` searches further: pip install 'joulemap[solver]'"

BOX_POWER: Final = (
    "energy and power are those of the whole box: devices without a part draw idle power, also beside a device alone"
)
"""Note on why a device alone takes more energy here than `compare` says of its chip."""

WORDS: Final = Words(
    caveats={
        "budget": Template("the power budget sets the rate of {chips}; placements at lower power were not searched"),
        "unexamined": Template("a {form} that was not examined could save at most {share:%} against {chips}"),
    },
    nouns={"throughput": "throughput"},
    better={"throughput": Template("has {ratio:x} the throughput[ of {rival}]")},
)

ONLY: Final = Template("{name} runs the model, with {value} {each}; no other placement does.")
EACH: Final = {"latency": "per batch", "throughput": "of throughput", "energy": "per batch"}
COPIES: Final = Template(
    "{name} copies {copied} between devices ({copies:n time} per batch), which takes {copy} of {latency}"
)
SIDE_BY_SIDE: Final = Template("{name} runs whole batches on each device")
SIMPLER: Final = Template("{name} is simpler: it copies nothing, and is statistically tied")
REFUSED: Final = Template("{name}: {reason}")


def describe_answer(facts: Facts) -> str:
    """Return the best placement and its lead over the best of the other kind."""
    if choices := facts.of(Choice):
        return describe_choices(choices[:2], facts.runs)
    (entry,) = facts.of(Entry)
    goal = facts.asked[0]
    return ONLY(name=name_run(facts.runs[entry.runs[0]]), value=show_range(entry.values[goal]), each=EACH[goal])


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on the copies of the best mixture, and on devices that cannot run the whole model."""
    return [*_describe_simpler(facts), *_describe_copies(facts), *_describe_refused(facts)][:MOST_WHY]


def _describe_simpler(facts: Facts) -> Iterator[str]:
    """Yield the device that is tied with a mixture."""
    for one in facts.of(Choice):
        first, rival = (facts.runs[key] for key in one.runs[:2])
        if one.runs[1] in one.tied and rival.settings == ("alone",) != first.settings:
            yield SIMPLER(name=name_run(rival))


def _describe_copies(facts: Facts) -> Iterator[str]:
    pair = next((one.runs[:2] for one in facts.of(Choice)), ())
    entries = {one.runs[0]: one.values for one in facts.of(Entry)}
    for key in pair:
        values, name = entries[key], name_run(facts.runs[key])
        if "copy" in values:
            shown = {one: show_quantity(values[one].value, values[one].unit) for one in ("copied", "copy", "latency")}
            yield COPIES(name=name, copies=round(values["copies"].value), **shown)
        elif facts.runs[key].settings == ("side by side",):
            yield SIDE_BY_SIDE(name=name)


def _describe_refused(facts: Facts) -> Iterator[str]:
    alike: dict[tuple[object, ...], list[Refusal]] = {}
    for one in facts.of(Refusal):
        alike.setdefault((one.code, one.reason, *one.values.items()), []).append(one)
    for some in alike.values():
        names = [name_run(facts.runs[one.runs[0]]) for one in some]
        yield REFUSED(name=join_names(names), reason=some[0].reason)
