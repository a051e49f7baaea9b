"""Options for serving a language model: requests, engine, and parallelism."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from joulemap.cli import (
    GIVEN,
    OutputOptions,
    complete_hardware,
    complete_precisions,
    complete_weights,
    offer,
    precisions,
    read_as,
    read_counts,
    read_quantity,
    repeat_options,
)
from joulemap.cli.command import advanced, option, optional
from joulemap.cli.option.run import WEIGHT_HELP, ManyRunOptions
from joulemap.cli.output import OUTPUT_HELP
from joulemap.system import UsageError, frozen, read_whole
from joulemap.wing.decoder import ENGINE, complete_engines

if TYPE_CHECKING:
    from joulemap.wing.llm.capacity.users import LatencyTarget
    from joulemap.wing.llm.setting import Serving

SERVING: Final = "Serving"
"""Heading of these options in help texts."""

DEVICES_HELP: Final = "Tensor-parallel devices (some engines: stages), one or several."

BATCHES: Final = "1,8,64"
"""Default batch sizes of `llm`."""

REPEATED: Final = (
    "prompt", "output_tokens", "engine", "cache", "prefix_hit", "turns", "pause", "cache_tier", "speculate",
    "acceptance", "draft",
)  # fmt: skip
"""Options of a server that a follow-up command repeats."""


@frozen(kw_only=True)
class ServerOptions:
    """Options for requests, the engine that serves them, and parallelism."""

    panel: ClassVar[str] = SERVING
    prompt: int = option(2048, "Prompt length in tokens.", metavar="TOKENS", min=1)
    output_tokens: str = option("256", "Output length in tokens.", "--output", metavar="TOKENS")
    engine: str = option(
        "",
        "Serving engine, e.g. vllm, vllm@2024, sglang, trtllm, llamacpp or hf.",
        metavar="NAME",
        shown=f"{ENGINE}; llamacpp for GGUF or local chips",
        complete=complete_engines,
    )
    devices: str = option("", DEVICES_HELP, metavar="N,...", shown="best number, up to a node")
    expert_devices: int = advanced(1, "Expert-parallel devices, out of all devices.", min=1)
    data_devices: int = advanced(
        1, "Number of data-parallel groups for attention; hosts that no link joins use a 400 Gb/s network.", min=1
    )
    micro_batches: int = advanced(
        1, "Parts of a batch that overlap exchanges with experts and computation, 1 or 2.", metavar="N", min=1, max=2
    )
    expert_load: float = advanced(
        1.11,
        "Expert tokens of the busiest device over the mean; about 2.6 without copies of busy experts.",
        metavar="RATIO",
        min=1.0,
    )
    pipeline_devices: int = advanced(
        1,
        "Pipeline stages, each with --devices devices; stages that no link joins use a 400 Gb/s network.",
        metavar="N",
        min=1,
    )
    cache: str = advanced(
        "",
        "Precision of the key-value cache, e.g. fp8.",
        metavar="NAME",
        shown="as published, or 16 bits",
        complete=complete_precisions,
    )

    prefix_hit: float | None = advanced(
        None,
        "Share of prompt tokens found in a prefix cache.",
        metavar="FRACTION",
        min=0.0,
        max=0.999,
    )
    turns: int = advanced(
        1,
        "Turns of each conversation; each turn adds --prompt tokens to the context.",
        min=1,
    )
    pause: str = optional("Mean time from an answer to the next turn, e.g. 5s.", "TIME", is_advanced=True)
    cache_tier: list[str] | None = advanced(
        None,
        "Memory for evicted prefixes: host, disk or remote, e.g. host:200GB@50GB/s; repeatable.",
        metavar="TIER",
    )

    speculate: str = optional(
        "Speculative decoding: number of draft tokens per step, or a method with published acceptance: mtp, eagle3 or "
        "draft.",
        "N|NAME",
        is_advanced=True,
    )
    acceptance: str = optional(
        "Acceptance rate of a draft token, given that all before it are accepted; several: one per depth.",
        "FRACTION,...",
        is_advanced=True,
    )
    draft: str = advanced(
        "",
        "Draft model with the same tokenizer, or `layer` for one more layer.",
        metavar="MODEL",
        shown="drafts at no cost",
        complete=offer("joulemap.wing.decoder.network.pass_name:list_decoders", is_one=True),
    )
    handover: str = advanced(
        "50GB/s",
        "Bandwidth between the prefill and decode pools for the cache.",
        metavar="BANDWIDTH",
    )

    def read(self) -> Serving:
        """Return the settings of a server; UsageError names an option that cannot be read."""
        from joulemap.wing.llm.setting import Serving

        try:
            output = read_whole(self.output_tokens)
        except ValueError:
            raise UsageError(
                f"--output {self.output_tokens}: expected a number of tokens; use -o to name a file"
            ) from None
        tiers = tuple(self.cache_tier or ())
        if tiers:
            from joulemap.wing.llm.setting import read_tier

            for one in tiers:
                read_tier(one)
        return read_as(
            Serving,
            self,
            output=output,
            devices=read_counts("--devices", self.devices),
            cache_tiers=tiers,
            **self.read_speculation(),
        )

    def repeat(self) -> tuple[str, ...]:
        """Return the words that repeat these options in a follow-up command on one server; defaults are omitted."""
        return repeat_options(self, REPEATED)

    def read_speculation(self) -> dict[str, Any]:
        """Return the fields of `Serving` for draft tokens, their acceptance by depth and the draft model.

        UsageError for invalid text.
        """
        if not self.speculate:
            if self.acceptance or self.draft:
                raise UsageError("--acceptance and --draft apply to speculative decoding: add --speculate 3")
            return {"speculate": None, "acceptance": None}
        from joulemap.wing.llm.setting import read_speculation

        return read_speculation(self.speculate, self.acceptance, self.draft)


@frozen(kw_only=True)
class ServingOptions(ServerOptions):
    """Options for a server, its users and the arrival of its requests."""

    devices: str = option("", DEVICES_HELP, metavar="N,...", shown="fewest that fit")
    users: int | None = option(None, "Concurrent users with one request each.", metavar="N")
    first_token: str = optional("Target mean TTFT with --users, e.g. 1s.", "TIME", "--first-token", "--ttft")
    between_tokens: str = optional("Target mean TPOT with --users, e.g. 30ms.", "TIME", "--between-tokens", "--tpot")
    rate: str = optional("Arrival rate (Poisson), e.g. 4/s; simulates each request.", "RATE")
    in_flight: int | None = advanced(
        None,
        "Concurrent requests; a new one starts when one ends. Lengths vary by 11 % around --prompt and --output.",
        min=1,
    )
    client: str = advanced(
        "steady",
        "Clients of --in-flight: steady (independent), together (a benchmark's) or waves (each after the last).",
        metavar="NAME",
    )
    requests: Path | None = advanced(
        None,
        "CSV of requests: prompt_tokens, output_tokens, optionally arrival_s, conversation, cached_tokens; or .jsonl.",
        metavar="FILE",
    )

    prefill_on: str = optional(
        "Hardware of a separate prefill pool; needs --decode-on and a request load.",
        "HARDWARE",
        complete=complete_hardware,
        is_advanced=True,
    )
    decode_on: str = optional(
        "Hardware of the decode pool, with --prefill-on.", "HARDWARE", complete=complete_hardware, is_advanced=True
    )

    def read(self) -> Serving:
        """Return the settings of a server; UsageError names an option that cannot be read."""
        if self.handover != "50GB/s" and not self.prefill_on:
            raise UsageError("--handover applies to two pools: add --prefill-on and --decode-on")
        return super().read()

    def read_target(self) -> LatencyTarget | None:
        """Return the latency target; None without users. UsageError for an invalid time, or for a time without
        users.
        """
        times = (
            read_quantity("--first-token", self.first_token, "s"),
            read_quantity("--between-tokens", self.between_tokens, "s"),
        )
        if self.users is None:
            if times != (None, None):
                raise UsageError("--first-token and --between-tokens are targets for users: add --users 50")
            return None
        from joulemap.wing.llm.capacity.users import LatencyTarget

        return LatencyTarget(users=self.users, first_token_s=times[0], between_s=times[1])


@frozen(kw_only=True)
class ServedRunOptions(ManyRunOptions):
    """Options for running a served language model."""

    repeated: ClassVar[tuple[str, ...]] = GIVEN
    can_lack_precision: ClassVar[bool] = True
    batch: str = option(BATCHES, "Batch sizes: sequences per step.", "--batch", "-b", metavar="N,...")
    precision: str = precisions(
        "",
        "Precisions of activations, and of weights without --weight-precision: bf16, fp16, fp8, int8 or fp4.",
        is_list=True,
        shown="as published",
    )
    weight_precision: str = advanced("", WEIGHT_HELP, metavar="FORMAT", shown="as published", complete=complete_weights)
    runtime: str = option("", is_absent=True)


@frozen(kw_only=True)
class ServedOutputOptions(OutputOptions):
    """Options for the database and the output of commands whose --output is a number of tokens."""

    output: Path | None = option(None, OUTPUT_HELP, "--output-file", "-o")
