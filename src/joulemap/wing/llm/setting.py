"""Settings of a served language model, and the texts of options for cache tiers and speculation."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.catalog import DATA
from joulemap.domain import ABOVE_0, each_count, each_text, is_count
from joulemap.domain.field import as_path, whole_to, within
from joulemap.system import UsageError, frozen, parse_si, read_real, read_whole
from joulemap.wing.decoder import MOST_GUESSED
from joulemap.wing.llm.client import CLIENTS

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.load import Load, Tier

READING_RATE: Final = 5.0
"""Tokens per second that a person reads. Source: assumed; 240 English words a minute at 1.3 tokens a word are 5.2."""


def _count(default: int = 1) -> Any:
    """Return the field of a whole number from 1."""
    return attrs.field(default=default, validator=is_count)


EXPERT_LOAD: Final = 1.11
"""Default tokens for experts of the busiest expert-parallel device over the mean, if copies of busy experts balance
them; 2.56 without copies.

Source: TensorRT-LLM, docs/source/blogs/tech_blog, blog 4, table 1: DeepSeek-R1 on 32 and 36 devices with 288 places for
256 experts, mean of all layers and steps.
"""


@frozen(kw_only=True)
class Serving:
    """Serving of a language model: requests, and how the model is split over devices."""

    prompt: int = _count(2048)
    """Tokens per prompt."""
    output: int = _count(256)
    """Output tokens per request; the first one ends the prefill."""
    engine: str = ""
    """Inference engine, by name or by name and date. Empty means llama.cpp for GGUF files and on CPUs outside data
    centers, else vLLM.
    """
    devices: tuple[int, ...] = attrs.field(default=(), converter=each_count, validator=is_count)
    """Numbers of tensor-parallel devices to compare. Empty means the fewest that hold the model and the smallest
    batch.
    """
    expert_devices: int = _count()
    """Number of devices among which whole experts are divided (expert parallelism). It must divide `devices` x
    `data_devices`.
    """
    data_devices: int = _count()
    """Number of device groups among which the sequences are divided for attention (data parallelism)."""
    micro_batches: int = attrs.field(default=1, validator=whole_to(2))
    """Parts of a batch that take turns: one exchanges tokens with experts while the other computes."""
    expert_load: float = attrs.field(default=EXPERT_LOAD, validator=within(1.0, 100.0, is_open=False))
    """Tokens for experts of the busiest device over the mean, if data-parallel groups send tokens to experts."""
    pipeline_devices: int = _count()
    """Number of pipeline stages. Each has `devices` x `data_devices` devices."""
    cache: str = ""
    """Precision of keys and values; empty for the precision of activations."""
    rate_per_s: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Arrival rate of random requests (Poisson). None models only the given batches."""
    in_flight: int | None = attrs.field(default=None, validator=attrs.validators.optional(is_count))
    """Concurrent requests (closed loop): a new one replaces each finished one. None models only the given batches."""
    client: str = "steady"
    """Start of the requests in flight, one of `CLIENTS`."""
    requests: str = attrs.field(default="", converter=as_path)
    """CSV or JSONL trace of requests, used instead of identical requests."""

    prefix_hit: float | None = attrs.field(default=None, validator=within(0.0, 0.999, is_open=False))
    """Share of prompt tokens that a prefix cache supplies; None for no prefix cache."""
    turns: int = _count()
    """Turns of each conversation. A prompt begins with all earlier turns; `prompt` counts its new tokens."""
    pause_s: float = attrs.field(default=0.0, validator=within(0.0, math.inf, is_open=False))
    """Mean time from the end of an answer to the next turn (exponential)."""
    cache_tiers: tuple[str, ...] = attrs.field(default=(), converter=each_text)
    """Memory below the devices for evicted blocks of a prefix cache, such as `host:200GB@50GB/s`, fastest first."""

    prefill_on: str = ""
    """Hardware of the prefill pool in disaggregated serving; empty if servers do both phases."""
    decode_on: str = ""
    """Hardware of the decode pool in disaggregated serving; empty if servers do both phases."""
    handover_bytes_per_s: float = attrs.field(default=50e9, validator=ABOVE_0)
    """Bandwidth between a prefill and a decode device; by default a 400 Gb/s network."""

    speculate: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole_to(MOST_GUESSED)))
    """Draft tokens per sequence and step; None without speculative decoding."""
    acceptance: float | None = attrs.field(default=None, validator=within(0.0, 1.0, is_open=False))
    """Probability that a draft token is accepted, given that all earlier ones were."""
    later_acceptance: tuple[float, ...] = ()
    """Acceptance of the second and later draft tokens; the last value also applies beyond. Empty if all equal
    `acceptance`.
    """
    draft: str = ""
    """Language model that drafts tokens, or `layer` for one extra layer like the model's last; empty if drafts are
    free.
    """

    def __attrs_post_init__(self) -> None:
        """Raise UsageError if fields contradict each other."""
        if self.micro_batches > 1 and not self.sends_tokens:
            raise UsageError(
                "--micro-batches 2 needs an exchange with experts: add --data-devices and --expert-devices"
            )
        if (self.speculate is None) != (self.acceptance is None) or (self.draft and self.speculate is None):
            raise UsageError(
                "speculate, the number of draft tokens, needs acceptance, the share of accepted ones; draft needs both"
            )
        if self.client not in CLIENTS:
            raise UsageError(f"--client is {self.client!r}, expected {', '.join(CLIENTS)}")
        if self.client != "steady" and (self.in_flight is None or self.turns > 1 or self.prefill_on):
            raise UsageError(f"--client {self.client} is for single requests of one server: add --in-flight 16")
        if bool(self.prefill_on) != bool(self.decode_on):
            raise UsageError("--prefill-on and --decode-on name the hardware of two pools: give both")
        for share in self.later_acceptance:
            if not 0.0 <= share <= 1.0:
                raise UsageError(f"--acceptance has {share:g}, expected shares from 0 to 1")
        if self.prefix_hit is not None and (self.turns > 1 or self.requests):
            raise UsageError("leave out --prefix-hit: --turns and --requests determine the prefix hits")
        if self.turns > 1 and self.requests:
            raise UsageError(
                "--turns generates conversations and the file of --requests contains them: leave one of the two out"
            )
        if self.pause_s and self.turns == 1:
            raise UsageError("--pause applies between the turns of a conversation: add --turns 8")
        if self.cache_tiers and self.turns == 1 and not self.requests:
            raise UsageError("--cache-tier keeps prefixes of conversations: add --turns 8 or --requests FILE")

    @property
    def sends_tokens(self) -> bool:
        """True if data-parallel groups send each token to the devices of its experts."""
        return self.data_devices > 1 and self.expert_devices > 1

    @property
    def division(self) -> dict[str, Any]:
        """Fields of a pass and of a deployment that state how sequences and experts are divided."""
        return {
            "expert_devices": self.expert_devices,
            "data_devices": self.data_devices,
            "micro_batches": self.micro_batches,
            "busiest": round(100.0 * self.expert_load) if self.sends_tokens else 100,
        }

    @property
    def longest_prompt(self) -> int:
        """Prompt tokens of the last turn."""
        return self.prompt + (self.turns - 1) * (self.prompt + self.output)

    @property
    def mean_prompt(self) -> int:
        """Mean prompt tokens of all turns."""
        return self.prompt + (self.turns - 1) * (self.prompt + self.output) // 2

    @property
    def reuses_prefixes(self) -> bool:
        """True if prompts begin with tokens that a prefix cache may supply."""
        return self.turns > 1 or bool(self.prefix_hit)

    @property
    def has_load(self) -> bool:
        """True if the question simulates individual requests."""
        return bool(self.rate_per_s or self.in_flight or self.requests)

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that a prefix cache supplies at the hit share of `--prefix-hit`."""
        return min(self.prompt - 1, round((self.prefix_hit or 0.0) * self.prompt))

    def read_tiers(self) -> tuple[Tier, ...]:
        """Return the tiers of the prefix cache below the devices; UsageError for an invalid one."""
        return tuple(map(read_tier, self.cache_tiers))

    def form_load(self, rate_per_s: float | None) -> Load:
        """Return the steady load of independent requests, or turns of conversations, at a rate."""
        from joulemap.wing.llm.serving.load import Load

        return Load(
            rate_per_s=rate_per_s,
            is_steady=True,
            prompt_tokens=self.prompt,
            output_tokens=self.output,
            cached_tokens=self.cached_tokens,
            turns=self.turns,
            pause_s=self.pause_s,
        )


SERVING: Final = Serving()
"""Default request: prompts of 2,048 tokens and answers of 256, on the fewest devices that can store the model."""

ENERGIES: Final = DATA / "model" / "tier.toml"
"""File with the constants of each kind of tier, such as its energy per byte."""

FORM: Final = re.compile(r"(?P<name>[a-z]+):(?P<capacity>[^@]*B)(?:@(?P<rate>.*B/s))?")
"""Form of a tier: its name, capacity and bandwidth."""

EXAMPLE: Final = "host:200GB@50GB/s"


@cache
def load_tables(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return name -> table of a built-in TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_tier(text: str) -> Tier:
    """Return a tier written as `host:200GB@50GB/s`; UsageError for another form."""
    from joulemap.wing.llm.serving.load import Tier

    match = FORM.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--cache-tier {text!r}: write a name, capacity and bandwidth, such as {EXAMPLE}")
    known = load_tables(ENERGIES)
    if match["name"] not in known:
        raise UsageError(f"--cache-tier {text!r}: no tier {match['name']!r}; there are {', '.join(known)}")
    if match["rate"] is None:
        raise UsageError(f"--cache-tier {text!r} has no bandwidth: write {text.strip()}@50GB/s")
    try:
        capacity, rate = parse_si(match["capacity"], "B"), parse_si(match["rate"], "B/s")
    except ValueError as error:
        raise UsageError(f"--cache-tier {text!r}: {error}; write {EXAMPLE}") from None
    if not (capacity >= 1.0 and rate >= 1.0):
        raise UsageError(f"--cache-tier {text!r}: capacity and bandwidth must be above 0")
    return Tier(
        name=match["name"],
        capacity_bytes=capacity,
        bytes_per_s=rate,
        j_per_byte=float(known[match["name"]]["j_per_byte"]["value"]),
    )


ACCEPTANCES: Final = DATA / "model" / "acceptance.toml"
"""File with the draft model of each method, its number of draft tokens, and their published acceptance by depth."""


def read_speculation(written: str, acceptance: str, draft: str) -> dict[str, Any]:
    """Return the fields of `Serving` for `3`, `mtp` or `eagle3:5`; UsageError for invalid text.

    `acceptance` is a list by depth, which replaces the published one; `draft` replaces the draft of the method.
    """
    name, _, count = written.partition(":")
    methods = load_tables(ACCEPTANCES)
    method = methods.get(name)
    rates = _read_rates(acceptance)
    if method is None:
        known = ", ".join(methods)
        tokens = _read_count(written, f"expected a number of tokens or one of {known}, such as mtp or eagle3:5")
        if not rates:
            raise UsageError(
                f"--speculate {written} needs --acceptance, the share of accepted draft tokens, such as 0.7"
            )
    else:
        tokens = _read_count(count, f"expected {name}:3 for 3 tokens") if count else int(method["tokens"])
        rates = rates or tuple(method["by_depth"])
        draft = draft or str(method["draft"])
        if not draft:
            raise UsageError(f"--speculate {name} needs --draft, a smaller model with the same tokenizer")
    return {"speculate": tokens, "acceptance": rates[0], "later_acceptance": rates[1:tokens], "draft": draft}


def _read_count(text: str, expected: str) -> int:
    try:
        return read_whole(text)
    except ValueError:
        raise UsageError(f"--speculate is {text!r}, {expected}") from None


def _read_rates(text: str) -> tuple[float, ...]:
    """Return the acceptance by depth; empty without a text."""
    rates = []
    for part in filter(None, text.split(",")):
        try:
            rate = read_real(part.strip())
        except ValueError:
            raise UsageError(f"--acceptance: {part.strip()!r} is not a number; write 0.7 or 0.8,0.6") from None
        if not 0.0 <= rate <= 1.0:
            raise UsageError(f"--acceptance is {rate:g}, expected a share from 0 to 1")
        rates.append(rate)
    return tuple(rates)
