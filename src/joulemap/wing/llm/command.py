"""`joulemap llm`."""

from __future__ import annotations

from typing import Annotated

import typer

from joulemap.cli import LIMIT_HELP, OUTPUT, offer
from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import ServedHardwareOptions
from joulemap.system import ExitCode, UsageError
from joulemap.wing.llm.option import BATCHES, ServedOutputOptions, ServedRunOptions, ServingOptions


@command
def llm(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Language model such as llama-3.1-8b, its config.json or folder, file.py:factory or hf:NAME.",
            autocompletion=offer("joulemap.wing.decoder.network.pass_name:list_decoders", is_one=True),
        ),
    ],
    *,
    limit: int = option(18, LIMIT_HELP, min=1, panel=OUTPUT),
    hardware: ServedHardwareOptions,
    serving: ServingOptions,
    run: ServedRunOptions,
    output: ServedOutputOptions,
) -> None:
    """Predict how hardware serves a language model.

    Shows time, energy and cost per token, and what fits in memory. Without a load such as `--users` or `--rate`, the
    requests of a batch arrive together.

    Prefill and decode are stored as runs; `explain --phase` and `edp --phase` break them down.

    \b
    joulemap llm llama-3.1-8b h100_sxm5 h200_sxm l4 --batch 1,64
    joulemap llm qwen3-32b --users 50 --prompt 2000 --output 400 --first-token 1s --between-tokens 30ms
    joulemap llm llama-3.1-70b h100_sxm5 --devices 1,2,4,8 --prompt 4096 --output 512
    joulemap llm llama-3.1-8b l4 apple_m4 --precision fp16 --weight-precision int4 --engine llamacpp --batch 1
    joulemap llm llama-3.1-8b h100_sxm5 --batch 1 --rate 4/s
    joulemap llm llama-3.1-8b --prefill-on h100_sxm5 --decode-on l4 --rate 1/s --batch 1
    joulemap llm llama-3.1-70b h100_sxm5 --pipeline-devices 4 --devices 1 --batch 1,8 --engine vllm@2024
    joulemap llm llama-3.1-8b h100_sxm5 --batch 1 --speculate 3 --acceptance 0.7 --draft llama-3.2-1b
    joulemap llm qwen3-30b-a3b h200_sxm mi300x --show details
    joulemap llm deepseek-r1 h200_sxm --precision fp8 --devices 8 --expert-devices 8 --batch 64
    """
    settings = run.settings(**hardware.keywords())
    from joulemap.wing.place import find_mixed

    if find_mixed(settings) is not None:
        divided = output.workspace().offload(model, settings, serving=serving.read())
        output.present(divided, run, limit=limit)
        return
    target = serving.read_target()
    if target is not None:
        if run.batch != BATCHES:
            raise UsageError("--batch: with --users, it follows from the users of a server; leave it out")
        served = output.workspace().serve_users(model, settings, target=target, serving=serving.read())
        output.present(served, run, limit=limit)
        if not served.is_met:
            raise typer.Exit(ExitCode.UNSUPPORTED)
        return
    answer = output.workspace().llm(
        model,
        settings,
        serving=serving.read(),
    )
    output.present(answer, run, limit=limit)
