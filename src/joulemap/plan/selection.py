"""Hardware that a question selects, each chip at its power modes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

import attrs

from joulemap.catalog.digest import expand_paths, is_hardware_path
from joulemap.catalog.family import Member, find_members, is_family, list_members, load_member
from joulemap.catalog.sheet import load_scenarios
from joulemap.domain.architecture import CLASS_HARDWARE, find_class, find_whole_class
from joulemap.domain.catalogue import (
    DEFAULT_HARDWARE,
    DEFAULT_MODE,
    LIST_HINT,
    HardwareEntry,
    Variant,
    describe_like,
    find_alike,
    find_entry,
)
from joulemap.domain.hardware_ref import HardwareRef, name_configured, name_variant
from joulemap.domain.settings import Deployment, Settings
from joulemap.physics.record.configuration import BOUNDARY, NO_HOST, BoundaryName
from joulemap.physics.record.operating_point import read_point
from joulemap.plan.budget import (
    Budget,
    Excess,
    Hosting,
    apply_scenario,
    find_budget,
    find_hosts,
    find_rest_w,
    keep_within,
)
from joulemap.plan.catalogue import check_names, known_hardware
from joulemap.plan.kind import find_kind, list_kinds
from joulemap.plan.target import AtLink, Target, WithoutHost
from joulemap.system.errors import AmbiguousNameError, CatalogueError, UnknownNameError, UsageError
from joulemap.system.name import find_nearest, fold_name, join_words, split_names, split_words, unmark
from joulemap.system.record import frozen
from joulemap.system.units import format_si

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware
    from joulemap.plan.calibration import CalibrationUse

BOXED: Final = "it is a box of several devices: name one of them"
"""Reason why a box has no boundary `system`."""

FORM_WORDS: Final = frozenset(("gb", "nvl", "pcie", "sxm"))
"""Words in a hardware id that state the memory or the form of a board."""

Default = Literal["four", "catalogue", "every mode"]
"""Default selection: one chip per requested class, else one of each of four classes; the whole catalogue; or the
catalogue in every power mode.
"""


@frozen(kw_only=True)
class Selection:
    """Hardware at power modes, in the requested order."""

    pairs: tuple[tuple[HardwareEntry, str], ...]
    own: Mapping[str, Hardware]
    """Name, file or id as requested -> hardware that is not a chip of the catalogue."""
    budget: Budget | None = None
    """Power budget that no mode exceeds."""
    left_out: Mapping[str, Excess] = {}
    """Hardware without a mode within the budget -> its excess."""
    unplugged: Mapping[str, str] = {}
    """Hardware without the requested boundary -> reason."""
    portless: Mapping[str, str] = {}
    """Hardware that does not fit its host -> reason."""
    miscalibrated: Mapping[str, str] = {}
    """Hardware whose calibration does not fit -> reason."""
    fallback_boundary: BoundaryName | Literal[""] = ""
    """Boundary of the hardware in `unplugged`; empty if such hardware is omitted."""
    meanings: Mapping[str, str] = {}
    """Class name in place of a chip -> the hardware that it selects."""
    abbreviations: Mapping[str, tuple[str, ...]] = {}
    """Alias that omits memory or form, as written -> the hardware that it means, then other versions."""
    members: frozenset[str] = frozenset()
    """Ids of hardware that belongs to a built-in family."""
    hosts: Mapping[str, Hosting] = {}
    """Hardware -> its host, or the host for operators that its compiler does not support."""
    is_device_only: bool = False
    """True if all work of hosts is left out."""
    link: str = ""
    """Link that is stated, as `Settings.link`."""

    @property
    def ids(self) -> frozenset[str]:
        """Ids of all selected hardware, without variants."""
        return frozenset(entry.described for entry, _ in self.pairs)

    def find_boundary(self, entry: HardwareEntry, asked: BoundaryName) -> BoundaryName:
        """Return the energy boundary of a chip: the requested one, or the fallback if the chip lacks it."""
        return self.fallback_boundary or asked if entry.id in self.unplugged else asked

    @property
    def boxes(self) -> dict[str, Hardware]:
        """Hardware of several chips, by id."""
        return {one.id: one for one in self.own.values() if find_kind(one.architecture) is not None}

    def target(self, entry: HardwareEntry, mode: str, calibration: CalibrationUse, boundary: BoundaryName) -> Target:
        """Return the target of selected hardware before constants are set, with its host."""
        boundary = self.find_boundary(entry, boundary)
        box, kind = self.boxes.get(entry.described), find_kind(entry.architecture)
        if box is not None and kind is not None:
            target = Target(entry, (kind.modifier(box, calibration, mode, boundary),))
        else:
            target = calibration.target(entry, mode, boundary)
            target = target.modified(AtLink(self.link)) if self.link else target
        host = self.hosts.get(entry.described)
        if self.is_device_only and (entry.needs_host or entry.fallback_host):
            return target.modified(WithoutHost())
        return target if host is None else target.modified(host.modifier(calibration, boundary))

    @property
    def parts(self) -> dict[str, tuple[Hardware, ...]]:
        """Chips of each box, by the id of the box."""
        return {name: list_parts(box) for name, box in self.boxes.items()}

    def check_chips(self, question: str) -> None:
        """Raise UsageError if the selection has a box, because the `question` takes single chips."""
        for box, parts in self.parts.items():
            counts = Counter(one.id for one in parts)
            counted = ", ".join(f"{count} {name}" for name, count in counts.items())
            name = f"name one of {', '.join(counts)}" if len(counts) > 1 else f"name {next(iter(counts))}"
            raise UsageError(f"{question} takes chips, but {box} is a box of {counted}: {name}")

    def check_alike(self, question: str) -> None:
        """Raise UsageError if a box has different devices, because the `question` divides work evenly."""
        for box, parts in self.parts.items():
            names = dict.fromkeys(one.id for one in parts)
            if len(names) > 1:
                fault = f"{box} has {', '.join(names)}: name one of them"
                raise UsageError(f"{question} splits a batch evenly over equal devices, but {fault}")

    @property
    def spelling(self) -> dict[str, str]:
        """Name in answers -> text that selects the hardware again, for hardware of files and variants.

        Boxes of the catalogue and members of families are in `own` under their ids and need no file. A record that the
        caller made is there under its id too.
        """
        paths = {
            hardware.id: path
            for path, hardware in self.own.items()
            if path != hardware.id or (find_kind(hardware.architecture) is None and path not in self.members)
        }
        paths |= {entry.id: entry.variant.place for entry, _ in self.pairs if entry.variant is not None}
        return {
            name_configured(entry.id, mode): name_configured(paths[entry.id], mode)
            for entry, mode in self.pairs
            if entry.id in paths
        }


def make_entry(hardware: Hardware) -> HardwareEntry:
    """Return the catalogue entry of hardware, with the fields that a wing's kind adds."""
    entry, kind = HardwareEntry.of(hardware), find_kind(hardware.architecture)
    return entry if kind is None else kind.extend_entry(entry)


def list_parts(hardware: Hardware) -> tuple[Hardware, ...]:
    """Return the chips that hardware consists of; a chip consists of itself."""
    kind = find_kind(hardware.architecture)
    return (hardware,) if kind is None else kind.list_parts(hardware)


def is_choice(settings: Settings) -> bool:
    """Return True if settings name hardware or filter it."""
    chosen = (settings.hardware, settings.architecture, settings.deployment, settings.kind, settings.scenario)
    return any(chosen)


def select_hardware(settings: Settings, default: Default = "four", *, is_capped: bool = True) -> Selection:
    """Return the hardware that settings select; each chip at a power mode appears once.

    Power modes keep the power budget unless `is_capped` is false: the caller then applies the budget itself. Raises
    UnknownNameError for an unknown name, CatalogueError for a file that is invalid or takes a name of the catalogue,
    UsageError if nothing is left.
    """
    settings = apply_scenario(settings)
    is_device_only = settings.host == NO_HOST
    is_hosted = bool(settings.host) and not is_device_only
    known = known_hardware((*settings.hardware, settings.host) if is_hosted else settings.hardware)
    names, own, designs = read_names(settings.hardware, known)
    check_names(own.items(), known)
    known = {**known, **{hardware.id: make_entry(hardware) for hardware in own.values()}, **designs}
    check_architectures(settings.architecture, {entry.architecture for entry in known.values()})
    pairs = _pairs(known, names, settings, default)
    chosen = tuple(
        dict.fromkeys(
            (entry, mode)
            for entry, mode in pairs
            if (not settings.architecture or entry.architecture in settings.architecture)
            and (not settings.deployment or set(entry.deployment) & set(settings.deployment))
            and (not settings.kind or entry.form in settings.kind)
        )
    )
    if not chosen:
        raise UsageError(f"no hardware is {_describe(names, settings)}; see `joulemap hardware list`")
    hosts = {} if is_device_only else find_hosts(settings, (entry for entry, _ in chosen), known)
    chosen, unplugged, portless = keep_with_boundary(chosen, names, known, settings, hosts)
    ids = {entry.described for entry, _ in chosen}
    meant = {name: find_default_chip(name) for name in names or _list_default_classes(settings, default)}
    meanings = {name: one for name, one in meant.items() if one in ids}
    budget = find_budget(settings)
    selection = Selection(
        pairs=chosen,
        own=own,
        members=frozenset(own) & list_members().keys() if own else frozenset(),
        meanings=meanings,
        abbreviations={
            name: versions for name in names if (versions := find_abbreviated(known, HardwareRef.read(name).id))
        },
        hosts=hosts,
        is_device_only=is_device_only,
        link=settings.link,
        unplugged=unplugged,
        portless=portless,
        fallback_boundary=settings.fallback_boundary,
    )
    if budget is None:
        return selection
    if not is_capped:
        return attrs.evolve(selection, budget=attrs.evolve(budget, is_mean=True))
    beside_w = {
        **find_rest_w((entry for entry, _ in chosen), known),
        **{name: host.entry.static_w for name, host in hosts.items() if host.is_counted},
    }
    named = {HardwareRef.read(name).mode.casefold() for name in names}
    fitting, left_out = keep_within(
        chosen, budget, is_every_mode=default == "every mode", beside_w=beside_w, named_modes=named
    )
    if not fitting:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UsageError(f"no hardware stays within {format_si(budget.power_w, 'W')}: {reasons}")
    return attrs.evolve(selection, pairs=fitting, budget=budget, left_out=left_out)


def keep_with_boundary(
    chosen: Sequence[tuple[HardwareEntry, str]],
    names: Iterable[str],
    known: Mapping[str, HardwareEntry],
    settings: Settings,
    hosts: Mapping[str, Hosting],
) -> tuple[tuple[tuple[HardwareEntry, str], ...], dict[str, str], dict[str, str]]:
    """Return the hardware that has the boundary of the settings and fits its host, and name -> reason for hardware
    without the boundary and for hardware without the port.

    With a fallback boundary in the settings, all hardware that fits its host is kept. Raises UsageError if explicitly
    named hardware is omitted, or nothing is left.
    """
    portless = {
        entry.id: f"it needs a {entry.needs_host}, and {host.entry.id} has {', '.join(host.entry.ports) or 'no port'}"
        for entry, _ in chosen
        if (host := hosts.get(entry.described)) is not None and host.is_counted and not host.fits(entry)
    }
    unplugged = find_unplugged((entry for entry, _ in chosen), settings.boundary)
    missing = {**({} if settings.fallback_boundary else unplugged), **portless}
    labels = [HardwareRef.read(name).label for name in names]
    classes = [label for label in labels if find_class(label) or find_whole_class(label) or label in load_scenarios()]
    named = {entry.id for label in labels if label not in classes for entry in find_alike(known, label)}
    refused = [entry.id for entry, _ in chosen if entry.id in missing and {entry.id, entry.described} & named]
    kept = tuple((entry, mode) for entry, mode in chosen if entry.id not in missing)
    if refused or not kept:
        name = refused[0] if refused else next(iter(missing))
        more = len(missing) - 1
        others = f" (and {more} more)" if more and not kept else ""
        if name in portless:
            raise UsageError(f"host {settings.host}: {name}{others} does not fit: {portless[name]}")
        raise UsageError(f"{name} has no energy at the wall{others}: {missing[name]}; use --boundary board")
    return kept, unplugged, portless


def find_unplugged(entries: Iterable[HardwareEntry], boundary: BoundaryName) -> dict[str, str]:
    """Return name -> reason for hardware that lacks a boundary.

    Only `system` can be missing: it needs the power at the wall.
    """
    if not BOUNDARY[boundary].is_at_wall:
        return {}
    from joulemap.catalog.surrounding import explain_missing

    reasons = {
        entry.id: explain_missing(entry) if find_kind(entry.architecture) is None else BOXED for entry in entries
    }
    return {name: reason for name, reason in reasons.items() if reason}


def select_one(hardware: str | Hardware, settings: Settings) -> Selection:
    """Return the selection of one named chip or box; other hardware in the settings is ignored.

    UsageError if the name means several.
    """
    selection = select_hardware(attrs.evolve(settings, hardware=(hardware,)))
    if len(selection.pairs) != 1:
        named = ", ".join(name_configured(entry.id, mode) for entry, mode in selection.pairs)
        name = hardware if isinstance(hardware, str) else hardware.id
        raise UsageError(
            f"{name} is {len(selection.pairs)} chips, expected one: {named}; `joulemap compare` takes several"
        )
    return selection


def select_chip(hardware: str | Hardware, settings: Settings) -> Selection:
    """Return the result of `select_one`; UsageError for a box or the name of a class."""
    selection = select_one(hardware, settings)
    selection.check_chips("this question")
    for name, meant in selection.meanings.items():
        raise UsageError(f"{name} is a class of hardware: name a chip of it, e.g. {meant}")
    return selection


def find_default_chip(name: str) -> str:
    """Return the default hardware of a class; empty if a name is not a class."""
    return CLASS_HARDWARE.get(find_class(HardwareRef.read(name).label), "")


def name_configuration(name: str, settings: Settings | None = None) -> str:
    """Return the name that answers use for hardware, from the text that requests it."""
    ((entry, mode),) = select_one(name, settings or Settings()).pairs
    return name_configured(entry.id, mode)


def resolve_name(name: str) -> str:
    """Return a name in which a class is replaced by its default hardware; other names stay unchanged."""
    meant = find_default_chip(name)
    return str(HardwareRef(meant, "", HardwareRef.read(name).mode)) if meant else name


def find_abbreviated(known: Mapping[str, HardwareEntry], name: str) -> tuple[str, ...]:
    """Return the hardware that an alias means, then the versions that differ only in memory and form.

    `A100` means one of four: with 40 or 80 GB, on a card or a module. Empty if there are no other versions.
    """
    if name in known or find_class(name):
        return ()
    entries = [entry for entry in known.values() if fold_name(name) in map(fold_name, entry.aliases)]
    words = split_words(name)
    others = [
        entry.id
        for entry in known.values()
        if entry not in entries
        and not words - (own := split_words(entry.id))
        and all(word in FORM_WORDS or word.isdecimal() for word in own - words)
    ]
    return (entries[0].id, *others) if len(entries) == 1 and others else ()


def check_architectures(architectures: Iterable[str], classes: Collection[str]) -> None:
    """Raise UnknownNameError for an architecture class that does not exist."""
    for architecture in architectures:
        if architecture not in classes:
            is_deployment = architecture in get_args(Deployment)
            hint = f"it is a deployment: --where deployment={architecture}" if is_deployment else ""
            raise UnknownNameError("architecture", architecture, classes, hint)


def split_hardware(words: Iterable[str], known: Mapping[str, HardwareEntry]) -> tuple[str, ...]:
    """Return the hardware names in words: separated by commas or spaces, or one name spread over several words.

    A power mode after a comma is another mode of the hardware before it: `rtx_5090@400W,500W`. Words that are not names
    stay unchanged.
    """
    parts = [part for word in words for part in _repeat_names(_split_commas(word))]
    is_name = partial(is_hardware, known)
    split = [(part,) if is_name(part) else join_words(part.split(), is_name) or _split_modes(part) for part in parts]
    if any(len(one) == 1 and not is_name(one[0]) for one in split):
        return join_words(parts, is_name) or tuple(name for one in split for name in one)
    return tuple(name for one in split for name in one)


def _repeat_names(parts: Sequence[str]) -> Iterator[str]:
    """Yield parts, where an operating point alone follows a name at a mode as that name at this point."""
    before = ""
    for part in parts:
        ref = HardwareRef.read(part)
        if before and read_point(part) is not None:
            yield f"{before}@{part}"
        else:
            before = part.rpartition("@")[0] if ref.mode else ""
            yield part


def _split_modes(text: str) -> tuple[str, ...]:
    """Split a text into words if a second name follows a power mode; otherwise return it whole."""
    return tuple(text.split()) if " " in HardwareRef.read(text).mode else (text,)


def is_hardware(known: Mapping[str, HardwareEntry], text: str) -> bool:
    """Return True if a text names hardware of the catalogue, a class, a box, or a file or folder."""
    ref = HardwareRef.read(text)
    plain = ref.id
    if " " in ref.mode and read_point(ref.mode) is None:  # the words after it are their own names
        return False
    if is_hardware_path(plain):
        return " " not in plain or os.path.exists(os.path.expanduser(plain))
    if find_class(plain) or find_whole_class(plain) or find_alike(known, plain) or is_family(plain):
        return True
    return any(kind.is_name(plain) for kind in list_kinds())


def _split_commas(word: str) -> tuple[str, ...]:
    """Return the parts of a word between commas; an existing path, or a word without commas, stays whole."""
    plain = HardwareRef.read(word).label
    if is_hardware_path(plain) and os.path.exists(os.path.expanduser(plain)):
        return (word.strip(),)
    return split_names(word) or (word,)


def read_names(
    hardware: Iterable[str | Hardware], known: Mapping[str, HardwareEntry]
) -> tuple[tuple[str, ...], dict[str, Hardware], dict[str, HardwareEntry]]:
    """Return (names, text -> hardware outside the catalogue, id -> entry of a design file) of requested hardware.

    Records, files and folders are replaced by the names of their hardware.
    """
    names: list[str] = []
    own: dict[str, Hardware] = {}
    designs: dict[str, HardwareEntry] = {}
    catalogue = known_hardware()
    for name in _split_texts(hardware, known):
        if not isinstance(name, str):
            from joulemap.catalog.load import load_catalogue

            names.append(name.id)
            if name.id not in known or load_catalogue().hardware.get(name.id) != name:
                own[name.id] = name.with_own_digest()
            continue
        ref = HardwareRef.read(name)
        label = ref.label
        if is_family(label):
            members = find_members([label])
            own |= {member: load_member(member) for member in members}
            names += [str(HardwareRef(member, "", ref.mode)) for member in members]
            continue
        if not is_hardware_path(label):
            own |= {one.id: load_member(one.id) for one in find_alike(known, ref.id) if one.id not in catalogue}
            box = _find_box(label, known)
            names.append(str(HardwareRef(box.id, "", ref.mode)) if box is not None else name)
            own |= {} if box is None else {box.id: box}
            continue
        from joulemap.catalog.design import is_design_file

        files = expand_paths([Path(label).expanduser()])
        whole = [path for path in files if not is_design_file(path)]
        for path, one in zip(whole, _load(whole, known), strict=True):
            names.append(str(HardwareRef(one.id, "", ref.mode)))
            own[label if len(files) == 1 and path == Path(label) else str(path)] = one
        for path in files:
            if path not in whole:
                design = _read_design(path, known, own)
                other = designs.setdefault(design.id, design)
                if other != design:
                    place = "" if other.variant is None else other.variant.place
                    raise CatalogueError(f"{path}: the id {design.id!r} is already that of {place}; choose another")
                names.append(str(HardwareRef(design.id, "", ref.mode)))
    return tuple(names), own, designs


def _read_design(path: Path, known: Mapping[str, HardwareEntry], own: dict[str, Hardware]) -> HardwareEntry:
    """Return the entry of the design that a file describes. If the base chip is a file too, add its path to `own`."""
    from joulemap.catalog.design import read_design

    design = read_design(path)
    if design.id in known:
        raise CatalogueError(f"{path}: id: {design.id!r} is already that of a chip of the catalogue; choose another")
    if is_hardware_path(design.like):
        from joulemap.catalog.load import load_files

        base_path = path.parent / design.like
        (base,) = load_files(expand_paths([base_path]))
        own[str(base_path)] = base
        entry = HardwareEntry.of(base)
    else:
        entry = find_entry(known, design.like)
    variant = Variant(base=entry.id, changes=tuple(design.set.items()), place=str(path))
    return attrs.evolve(entry, id=design.id, aliases=(), variant=variant)


def _find_box(name: str, known: Mapping[str, HardwareEntry]) -> Hardware | None:
    """Return the box that a name outside the catalogue means; None if it means no box.

    Raise CatalogueError if the box cannot be built.
    """
    if find_class(name) or find_whole_class(name) or find_alike(known, name):
        return None
    boxes = (kind.find(name, known) for kind in list_kinds())
    return next((one for one in boxes if one is not None), None)


def _load(files: Sequence[Path], known: Mapping[str, HardwareEntry]) -> list[Hardware]:
    """Return the hardware that files describe, both chips and hardware of a wing's kind."""
    from joulemap.catalog.load import load_files

    kinds = {path: kind for path in files for kind in list_kinds() if kind.is_file(path)}
    chips = [path for path in files if path not in kinds]
    chips_by_path = dict(zip(chips, load_files(chips), strict=True))
    return [kinds[path].load(path, known) if path in kinds else chips_by_path[path] for path in files]


def _split_texts(hardware: Iterable[str | Hardware], known: Mapping[str, HardwareEntry]) -> Iterator[str | Hardware]:
    """Yield each hardware name in texts, and each record, in order."""
    for is_text, group in groupby(hardware, key=lambda one: isinstance(one, str)):
        texts_or_records = list(group)
        yield from split_hardware(cast("list[str]", texts_or_records), known) if is_text else texts_or_records


def _pairs(
    known: Mapping[str, HardwareEntry], names: tuple[str, ...], settings: Settings, default: Default
) -> list[tuple[HardwareEntry, str]]:
    power_mode = settings.power_mode
    if names:
        pairs = [pair for name in names for pair in _find(known, name, power_mode, default)]
    else:
        is_filtered = (
            settings.architecture or settings.deployment or settings.kind or power_mode or settings.power_budget_w
        )
        standing = _list_default_classes(settings, default)
        entries = [known[find_default_chip(name)] for name in standing] or [known[name] for name in DEFAULT_HARDWARE]
        if (is_filtered and not standing) or default != "four":
            is_any = bool(settings.kind) or settings.takes_all  # else nothing that is only inside another product
            entries = [entry for entry in known.values() if is_any or not entry.sold_in]
        pairs = [(entry, mode) for entry in entries for mode in _modes(entry, power_mode, default)]
        if power_mode and not pairs:
            raise UnknownNameError(
                "power mode", power_mode, {mode for one in known.values() for mode in one.power_modes}
            )
    return pairs


def _list_default_classes(settings: Settings, default: Default) -> tuple[str, ...]:
    """Return the requested classes whose default chips are selected; empty if another filter is set."""
    is_narrowed = settings.deployment or settings.kind or settings.power_mode or settings.power_budget_w
    return () if is_narrowed or default != "four" else settings.architecture


def _modes(entry: HardwareEntry, power_mode: str, default: Default) -> list[str]:
    if power_mode:
        return [entry.find_mode(power_mode)] if entry.has_mode(power_mode) else []
    return list(entry.distinct_modes) if default == "every mode" else [DEFAULT_MODE]


def refuse_scenario(name: str) -> None:
    """Raise UnknownNameError for the name of a deployment or a scenario in place of hardware."""
    if name in get_args(Deployment):
        raise UnknownNameError("hardware", name, (), f"it is a deployment: --where deployment={name}")
    if name in load_scenarios():
        raise UnknownNameError("hardware", name, (), f"it is a scenario: --where scenario={name}")


def _find(
    known: Mapping[str, HardwareEntry], name: str, power_mode: str, default: Default
) -> list[tuple[HardwareEntry, str]]:
    ref = HardwareRef.read(unmark(name))
    plain = ref.id
    if ref.settings:
        (entry, mode), *_ = _find(known, str(HardwareRef(plain, "", ref.mode)), power_mode, default)
        return [(_make_variant(entry, ref), mode)]
    refuse_scenario(plain)
    if whole := find_whole_class(plain):
        entries = [one for one in known.values() if one.architecture == whole]
        return [(one, mode) for one in entries for mode in _modes(one, ref.mode or power_mode, default)]
    entry = known[find_default_chip(plain)] if find_default_chip(plain) else find_chip(known, plain)
    if power_mode and not ref.mode:
        return [(entry, entry.find_mode(power_mode))]
    mode = entry.mode_of(ref)
    return [(entry, one) for one in ([mode] if ref.mode or mode != DEFAULT_MODE else _modes(entry, "", default))]


def _make_variant(entry: HardwareEntry, ref: HardwareRef) -> HardwareEntry:
    """Return the variant whose numbers a reference sets; UsageError for a reference that cannot be read."""
    changes = ref.changes
    name = name_variant(entry.id, changes)
    variant = Variant(base=entry.described, changes=changes, place=name, memory=ref.memory)
    return attrs.evolve(entry, id=name, variant=variant)


def find_chip(known: Mapping[str, HardwareEntry], name: str) -> HardwareEntry:
    """Return the hardware entry of a name; UnknownNameError suggests the nearest hardware and boxes."""
    try:
        return find_entry(known, name)
    except UnknownNameError as error:
        from joulemap.domain.printed import find_vendors, shorten

        if isinstance(error, AmbiguousNameError):
            raise
        every: dict[str, Member | HardwareEntry] = {**list_members(), **known}
        vendors = find_vendors(name)
        of_vendor = [one.names for one in every.values() if one.vendor.lower() in vendors]
        near = find_nearest(shorten(name), of_vendor or [one.names for one in every.values()])
        boxes = [] if near else [one for kind in list_kinds() for one in kind.list_near(name)]
        if not near and not boxes:
            raise
        hint = f"{LIST_HINT}, {describe_like(known_hardware(near[:1]), near[0])}" if near else LIST_HINT
        raise UnknownNameError("hardware", name, (), hint, near=(*near, *boxes)) from error


def _describe(names: tuple[str, ...], settings: Settings) -> str:
    parts = [
        f"one of {', '.join(names)}" if names else "",
        f"of architecture {' or '.join(settings.architecture)}" if settings.architecture else "",
        f"for {' or '.join(settings.deployment)}" if settings.deployment else "",
        f"in a {' or '.join(settings.kind)}" if settings.kind else "",
        f"with a power mode {settings.power_mode}" if settings.power_mode else "",
    ]
    return " and ".join(part for part in parts if part)
