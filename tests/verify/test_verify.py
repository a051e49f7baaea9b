"""Files of other people's tools: each format by a sample of it and by a broken one, and causes that are known."""

from __future__ import annotations

import gzip
import io
import json
import math
import pickle
import re
import time
import tomllib
from pathlib import Path
from typing import Any, Final, cast

import attrs
import pytest

from compare import assert_close
from conftest import Run
from joulemap.catalog.calibration import read_calibration
from joulemap.catalog.load import find_hardware
from joulemap.domain.measurement import Measurement
from joulemap.plan.source import Source
from joulemap.show.present.cell import show_share
from joulemap.system.errors import CatalogueError, ExitCode, UnknownNameError, UsageError
from joulemap.wing.llm.row import Prediction, ServingRow
from joulemap.wing.verify import measured
from joulemap.wing.verify.cause import STATED, find_causes, list_suppositions
from joulemap.wing.verify.file import Reading, read_file
from joulemap.wing.verify.forecast import Case, Figure, Forecast, forecast
from joulemap.wing.verify.measured import count_devices, find, list_formats, pick, read_lines
from joulemap.wing.verify.show.word import CHANGES
from joulemap.workspace import Workspace
from served_case import predict_row

DATA = Path(__file__).parents[1] / "data" / "verify"

NOTHING: dict[str, Any] = dict.fromkeys(("model", "hardware", "host", "precision", "runtime", "engine"), "")
NOTHING |= dict.fromkeys(("batch", "devices", "replicas", "passes", "prompt", "output"))

SAMPLES: dict[str, dict[str, Any]] = tomllib.loads((DATA.parent / "verify_case.toml").read_text(encoding="utf-8"))
"""Sample -> what a person adds, what is read, and what is taken out of it."""


def state(name: str, **others: Any) -> dict[str, Any]:
    """Return what a person states beside a sample."""
    return {**NOTHING, **SAMPLES[name].get("stated", {}), **others}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_read(name: str) -> None:
    row = read_file(DATA / name, state(name))[0].row
    expected = SAMPLES[name]["read"]
    for column, value in (expected | dict.fromkeys(SAMPLES[name].get("absent", ()))).items():
        if isinstance(value, float):
            assert_close(getattr(row, column), value)
        else:
            assert getattr(row, column) == value, column


def test_each_format_has_a_sample() -> None:
    found = {read_file(DATA / name, state(name))[0].form.name for name in SAMPLES}
    assert found == {one.name for one in list_formats()}
    assert all(one.url.startswith("https://") for one in list_formats())


@pytest.mark.parametrize("name", SAMPLES)
def test_a_broken_file_is_refused_in_a_line(name: str, tmp_path: Path) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    pattern, replacement = SAMPLES[name]["broken"]
    broken = re.sub(pattern, replacement, text)
    assert broken != text
    place = tmp_path / name
    place.write_text(broken, encoding="utf-8")
    with pytest.raises((CatalogueError, UsageError)) as caught:
        read_file(place, state(name))
    assert str(place) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (pickle.dumps([1.0]), "a pickle, which runs code"),
        (b"PK\x03\x04", "an archive of torch.save"),
        (b"", "an empty file"),
        (b"\xc3\x28", "not UTF-8"),
        (b"\xff\xfe\xff", "cannot be read"),
        (b'{"loss": 1.0}', "JSON with loss, of unknown format; known formats: InferenceX"),
        (b"epoch,loss\n1,2\n", "text that begins with 'epoch,loss'"),
        (gzip.compress(b"x", mtime=0)[:12], "cannot be read"),
        (b"[" * 100_000, "damaged or incomplete"),
    ],
)
def test_a_file_of_no_format_says_what_it_looks_like(content: bytes, what: str, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(content)
    with pytest.raises(CatalogueError, match=re.escape(what)):
        read_file(place, NOTHING)


@pytest.mark.parametrize(
    "unit", ["\n", " ", "1", "a", "=", "x:", "1 ", "a,", "\r\n", "--shapes=a", "Measurement(time=1"]
)
def test_reading_takes_time_in_proportion_to_the_length_of_a_file(unit: str) -> None:
    text = "\n" + unit * (60_000 // len(unit)) + "~"
    for form in list_formats():
        for pattern in filter(None, (form.mark, form.line, form.split, form.end, *form.patterns.values())):
            begun = time.process_time()
            re.findall(pattern, text, re.MULTILINE)
            assert time.process_time() - begun < 1.0, (form.name, pattern)


def test_devices_that_a_file_does_not_state_are_the_fewest_that_hold_the_model(tmp_path: Path) -> None:
    content = json.loads((DATA / "vllm.json").read_text())
    path = tmp_path / "vllm.json"
    path.write_text(json.dumps({name: one for name, one in content.items() if name not in ("gpu", "decode_replicas")}))
    for model, count in (("llama-3.1-8b", 1), ("llama-3.1-70b", 4)):  # 141 GB of weights and 31 requests in 80 GB each
        (found,) = read_file(path, {**NOTHING, "model": model, "hardware": "h100_sxm5"})
        assert isinstance(found.row, ServingRow)
        assert (found.row.device_count, found.row.tensor_parallel) == (count, count)
        assert f"--devices {count}" in found.row.notes


def test_a_trace_may_be_packed_and_is_never_longer_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "trace.json.gz"
    place.write_bytes(gzip.compress((DATA / "trace.json").read_bytes()))
    stated = state("trace.json")
    assert read_file(place, stated)[0].row.batch == 2
    monkeypatch.setattr(measured, "MOST_BYTES", 1_500)
    with pytest.raises(CatalogueError, match="too large"):
        read_file(place, stated)


def test_a_trace_whose_gpu_waits_for_the_host_is_compared_by_its_busy_time(tmp_path: Path) -> None:
    kernels = [("gemm", 0, 100), ("gemm", 50, 100), ("nchwToNhwcKernel", 900, 100)]  # busy: 150 + 100 of 1,000 us
    events = [{"ph": "X", "cat": "kernel", "name": name, "ts": at, "dur": taken} for name, at, taken in kernels]
    place = tmp_path / "trace.json"
    place.write_text(json.dumps({"traceEvents": events}))
    stated = {**NOTHING, "model": "resnet18", "hardware": "l4", "precision": "fp16", "batch": 1, "passes": 2}
    reading = read_file(place, stated)[0]
    assert isinstance(reading.row, Measurement)
    assert reading.row.runtime == "graph"
    assert_close(reading.row.latency_s, 125e-6)
    found = {one.kind: one for one in reading.findings}
    assert found.keys() == {"profiled", "busy", "transposed"}
    assert_close(found["busy"].doubt, math.log(4.0))  # busy for 125 of 500 us per pass
    assert_close(cast("float", found["transposed"].values["share"]), 0.4)  # 50 us of layout copies
    kept = read_file(place, {**stated, "runtime": "eager"})[0]
    assert isinstance(kept.row, Measurement)
    assert_close(kept.row.latency_s, 500e-6)
    assert [one.kind for one in kept.findings] == ["profiled", "transposed"]


@pytest.mark.parametrize(
    ("name", "stated", "asked"),
    [
        ("trtexec.log", {"hardware": "rtx_3071"}, "did you mean rtx_"),
        ("timer.txt", {"hardware": "l4"}, "add --precision"),
        ("mlperf_log_summary.txt", {"model": "resnet50", "precision": "int8"}, "add --hard"),
        ("trace.json", {"hardware": "l4"}, "add --model"),
        ("zeus.csv", {"hardware": "l4"}, "add --passes N"),
        ("printed.txt", {"hardware": "l4"}, "add --model"),
        ("guidellm.json", {"model": "lama-3.1-8b", "hardware": "l4"}, "llama-3.1-8b.*--model"),
        ("vllm.json", {"engine": "vlm"}, "vllm.*--engine"),
        ("vllm.json", {"precision": "fp7"}, "--precision"),
    ],
)  # fmt: skip
def test_what_is_missing_is_asked_for_by_its_option(name: str, stated: dict[str, str], asked: str) -> None:
    with pytest.raises((UsageError, UnknownNameError), match=asked):
        read_file(DATA / name, {**NOTHING, **stated})


def change(name: str, tmp_path: Path, *swaps: tuple[str, str], **stated: Any) -> list[Any]:
    """The rows of a sample in which texts are others."""
    text = (DATA / name).read_text(encoding="utf-8")
    for before, after in swaps:
        assert before in text
        text = text.replace(before, after)
    place = tmp_path / name
    place.write_text(text, encoding="utf-8")
    return [one.row for one in read_file(place, {**NOTHING, **stated} if stated else state(name))]


def test_a_meter_that_writes_again_while_it_runs_tells_one_run(tmp_path: Path) -> None:
    """Each row of a run of CodeCarbon tells all since its start: the last counts. Its tasks are runs of their own."""
    head, row = (DATA / "codecarbon.csv").read_text(encoding="utf-8").splitlines()
    early = row.replace("6182.034128322266", "3000.0")
    (one,) = change("codecarbon.csv", tmp_path, (row, f"{early}\n{row}"))
    assert_close(one.latency_s, 6.182034128)
    swaps = (head, f"task_name,{head}"), (row, f"load,{early}\ninfer,{row}")
    assert [round(one.latency_s, 3) for one in change("codecarbon.csv", tmp_path, *swaps)] == [3.0, 6.182]


def test_a_chip_of_a_processor_and_a_gpu_has_the_energy_of_both(tmp_path: Path) -> None:
    """0.3928191067550344 and 0.1931873318846627 kWh over 1,000 passes."""
    swaps = ("AMD EPYC 7643 48-Core Processor", "Apple M1"), ("1 x NVIDIA RTX A5000", "Apple M1")
    (one,) = change("codecarbon.csv", tmp_path, *swaps)
    assert_close(one.energy_j, (0.3928191067550344 + 0.1931873318846627) * 3600.0)


def test_a_processor_is_the_hardware_where_a_build_has_no_gpu(tmp_path: Path) -> None:
    """llama.cpp counts layers on the GPU of builds that have none, and names a library before the processor."""
    swaps = ("AMD Ryzen 7 7800X3D 8-Core Processor", "Accelerate, Apple M4 Pro"), ("NVIDIA GeForce RTX 4080", "")
    rows = change("llama_bench.json", tmp_path, *swaps, model="qwen2-7b")
    assert rows[0].hardware == "apple_m4_pro"


def test_tokens_that_were_guessed_ahead_are_told(tmp_path: Path) -> None:
    (row,) = change("vllm.json", tmp_path, ('"completed"', '"spec_decode_num_drafts": 1260, "completed"'))
    assert row.speculative == "1260"


def test_tokens_accepted_at_once_are_speculative(tmp_path: Path) -> None:
    (row,) = change("sglang.jsonl", tmp_path, ('"completed"', '"accept_length": 2.9, "completed"'))
    assert row.speculative == "2.9"
    (row,) = change("sglang.jsonl", tmp_path, ('"completed"', '"accept_length": null, "completed"'))
    assert row.speculative == ""


def count_left_out(reading: Reading) -> tuple[Any, Any, Any]:
    """Return the number of runs or rows that were left out, of all, and the reasons with their numbers."""
    found = [one.values for one in reading.findings if one.kind == "left_out"]
    return (found[0]["count"], found[0]["total"], found[0]["reasons"]) if found else (0, 0, ())


def test_a_run_that_failed_leaves_the_others_of_its_file(tmp_path: Path) -> None:
    place = tmp_path / "sweep.jsonl"
    whole = (DATA / "sglang.jsonl").read_text(encoding="utf-8").strip()
    place.write_text("\n".join((whole, whole.replace('"completed": 320', '"completed": 0'))), encoding="utf-8")
    (one,) = read_file(place, state("sglang.jsonl"))
    assert count_left_out(one) == (1, 2, (("no request was completed", 1),))


@pytest.mark.parametrize(
    ("name", "swaps"),
    [
        ("codecarbon.csv", ((",", ";"), ("0.3928191067550344", "0,3928191067550344"), ("6182.03", "6182,03"))),
        ("aiperf.csv", (('"1,049.50"', "1049.50"),)),
        ("zeus.csv", (("window_name", '"window_name"'),)),
    ],
)
def test_a_table_is_read_as_other_places_write_it(
    name: str, swaps: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    (plain,) = read_file(DATA / name, state(name))
    assert change(name, tmp_path, *swaps) == [plain.row]


def test_a_prompt_alone_has_no_time_between_tokens(tmp_path: Path) -> None:
    """vLLM writes 0 for it where each request makes one token; requests in flight are rate x first token."""
    swaps = ('"total_output_tokens": 81050', '"total_output_tokens": 300'), ("13.577995860227945", "0.0")
    (row,) = change("vllm.json", tmp_path, *swaps, ('"mean_itl_ms": 13.505887271504633', '"mean_itl_ms": 0.0'))
    assert row.inter_token_latency_s is None
    assert_close(row.batch, 8.325406649602808 * 0.054577085783294024 / 4.0)


@pytest.mark.parametrize(("latency_s", "mean"), [(21.9247, 921.6), (25.0, 1024.0)])
def test_inferencex_states_the_longest_request_unless_its_rate_says_otherwise(
    tmp_path: Path, latency_s: float, mean: float
) -> None:
    """1,326 tokens a second for 21.9 s are 909 for each of 32 requests, below the stated 1,024; for 25 s, 1,036."""
    one = json.loads((DATA / "inferencex.json").read_text())[0] | {"median_e2el": latency_s}
    path = tmp_path / "one.json"
    path.write_text(json.dumps([one]))
    row: Any = read_file(path, NOTHING)[0].row
    assert_close(row.prompt_tokens, mean)
    assert_close(row.output_tokens, mean)


def test_lengths_that_no_file_tells_are_asked_for(tmp_path: Path) -> None:
    place = tmp_path / "old.json"
    place.write_text(re.sub(r'"[io]sl": \d+, ', "", (DATA / "inferencex.json").read_text(encoding="utf-8")))
    with pytest.raises(UsageError, match="add --prompt, --output"):
        read_file(place, NOTHING)
    for path, stated in ((place, {"prompt": 7, "output": 512}), (DATA / "inferencex.json", {"prompt": 7})):
        row: Any = read_file(path, {**NOTHING, **stated})[0].row
        assert row.prompt_tokens == 7.0


def test_requests_in_flight_follow_from_littles_law() -> None:
    """8.3254 requests a second, each 54.6 ms and 269.17 steps of 13.578 ms: 30.88 at once, a quarter on a replica."""
    row = read_file(DATA / "vllm.json", NOTHING)[0].row
    seconds = 0.054577085783 + 0.013577995860 * (81050 / 300 - 1.0)
    assert_close(float(row.batch), 8.325406649603 * seconds / 4.0)


def test_parts_of_reading_by_hand() -> None:
    assert count_devices("4xNVIDIA_L40S") == (4, "NVIDIA L40S")
    assert count_devices("NVIDIA L4") == (1, "NVIDIA L4")
    assert find({"a": {"b": [{"c": 1}]}}, "a.*.*.c") == 1
    assert find({"a": [1, 2]}, "a.1") == 2
    assert find({"a": 1}, "a.b") is None
    assert find({"a": {"b": 1, "c": 2}}, "a.#") == 2
    gpus = {"gpu_0": {"avg": 300.5}, "gpu_1": {"avg": 299.5}, "unit": "W"}
    assert find({"a": gpus}, "a.+.avg") == 600.0
    assert find({"a": {"unit": "W"}}, "a.+.avg") is None
    assert read_lines("# Mean TTFT (ms):   7279.56 \r\nScenario : Single Stream\n100%|#| 32/32 [02:30<00:00]\n") == {
        "mean_ttft_ms": "7279.56",
        "scenario": "Single Stream",
    }
    data = {"x_ms": 2, "m": {"avg": 3, "unit": "us"}, "nothing": 0, "word": "2", "hw": ""}
    columns = {name: [path] for name, path in (("a", "x_ms"), ("b", "m.avg"), ("c", "nothing"), ("d", "word"))}
    assert pick(data, {**columns, "hardware": ["hw"]}) == {"a": 2e-3, "b": 3e-6, "d": 2.0}


def test_the_same_chip_by_another_name_contradicts_no_file() -> None:
    for hardware, count in (("rtx_4080", 0), ("rtx_4090", 1)):
        one = read_file(DATA / "llama_bench.json", {**NOTHING, "hardware": hardware})[0]
        overridden = [finding.values["option"] for finding in one.findings if finding.kind == "overridden"]
        assert overridden == ["hardware"] * count
        assert one.other_hardware == ("rtx_4080" if count else "")


def test_replicas_name_their_share_of_the_requests_once() -> None:
    """30.9 requests in flight on four replicas: the answer is of one, with 7.72."""
    (one,) = read_file(DATA / "vllm.json", dict(NOTHING))
    batch = one.row.batch or 0.0
    assert_close(batch, 30.9 / 4.0, rel=1e-2)
    assert not [finding for finding in one.findings if finding.values.get("option") == "devices"]
    (each,) = (finding.values for finding in one.findings if finding.kind == "each")
    assert (each["part"], each["count"], each["batch"]) == ("replica", 4, 4.0 * batch)


@pytest.mark.parametrize(
    ("model", "written", "expected"),
    [
        ("openai/gpt-oss-120b", "fp4", "mxfp4"),
        ("openai/gpt-oss-120b", "", "mxfp4"),
        ("openai/gpt-oss-120b", "nvfp4", "nvfp4"),
        ("deepseek-ai/DeepSeek-R1-0528", "fp8", "fp8_block"),
        ("deepseek-ai/DeepSeek-R1-0528", "fp4", "fp4"),
        ("moonshotai/Kimi-K2.5", "int4", "int4:32"),
        ("meta-llama/Llama-3.1-8B-Instruct", "fp8", "fp8"),
        ("meta-llama/Llama-3.1-8B-Instruct", "", ""),
    ],
)
def test_a_kind_of_weights_is_the_format_in_which_the_model_is_published(
    model: str, written: str, expected: str, tmp_path: Path
) -> None:
    one = json.loads((DATA / "inferencex.json").read_text())[0] | {"model": model, "precision": written}
    path = tmp_path / "x.json"
    path.write_text(json.dumps([one]))
    (reading,) = read_file(path, NOTHING)
    assert isinstance(reading.row, ServingRow)
    assert reading.row.weight_precision == expected
    assert ("weight_precision" in reading.assumed) == (not written)


def test_requests_that_start_together_wait_for_each_others_prompts(tmp_path: Path) -> None:
    """All of 300 prompts of 999 tokens in passes of 8,192: the mean waits for about half of them; or 32 of 300 do."""
    one = json.loads((DATA / "vllm.json").read_text()) | {
        "request_rate": "inf",
        "gpu": "NVIDIA H100",
        "decode_replicas": 1,
    }
    found: dict[str, Prediction] = {}
    for name, limit in (("all", None), ("few", 32)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(one | {"max_concurrency": limit}))
        (reading,) = read_file(path, NOTHING)
        assert isinstance(reading.row, ServingRow)
        assert (reading.row.client, reading.row.requests) == ("together", 300)
        for client in ("together", "steady"):
            row = attrs.evolve(reading.row, client=client)
            found[f"{name} {client}"] = predict_row(row, find_hardware("h100_sxm5"))
    first = {name: one.time_to_first_token_s or 0.0 for name, one in found.items()}
    assert_close(first["all together"] / first["all steady"], 0.5, rel=0.15)
    assert first["few together"] > first["few steady"]
    assert_close(found["few together"].inter_token_latency_s, found["few steady"].inter_token_latency_s or 0.0, rel=0.1)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("changed", "impossible"),
    [
        ({"avg_power_w": 248}, {"power_w"}),
        ({"avg_power_w": 80}, set()),
        ({"median_tpot": 0.0005}, {"inter_token_latency_s"}),
        ({"tput_per_gpu": 1e6}, {"total_tokens_per_s"}),
    ],
)
@pytest.mark.slow
def test_a_number_beyond_the_chips_limits_is_not_scored(
    changed: dict[str, float], impossible: set[str], tmp_path: Path, workspace: Workspace
) -> None:
    """An L4 draws 72 W, reads the 3.2 GB of weights in 10 ms, and computes 485 T operations a second at most."""
    one = json.loads((DATA / "inferencex.json").read_text())[0]
    one |= {"hw": "l4", "model": "meta-llama/Llama-3.2-3B-Instruct", "tp": 1, **changed}
    path = tmp_path / "x.json"
    path.write_text(json.dumps([one]))
    rows = workspace.verify(path).rows
    assert {row.quantity for row in rows if row.measured is None} == impossible
    assert all(row.reason and row.is_inside is None for row in rows if row.measured is None)


def test_an_interval_holds_what_is_within_its_factor() -> None:
    figure = Figure(value=2.0, half_width=0.6931471805599453)
    assert_close(figure.low, 1.0)
    assert [figure.holds(value) for value in (0.99, 1.01, 3.99, 4.01)] == [False, True, True, False]
    assert_close(figure.miss(4.0), 1.0)
    one = Forecast(figures={"latency_s": figure, "power_w": Figure(value=1.0, half_width=None)})
    assert one.holds({"latency_s": 2.0, "power_w": 9.0}) is True
    assert one.holds({"power_w": 9.0}) is None


def vary(row: Any, **fields: Any) -> Any:
    """A row with other values; its kind is known to who asks."""
    return attrs.evolve(row, **fields)


def check_cause(source: Source, told: Measurement | ServingRow, is_so: Measurement | ServingRow, change: str) -> None:
    """What is predicted of one configuration is told as measured of another: the difference explains it, exactly."""
    whole, plain = forecast(source, [Case(row=is_so), Case(row=told)])
    names = ("latency_s", "energy_j", "time_to_first_token_s", "inter_token_latency_s")
    figures = {name: figure.value for name, figure in whole.figures.items() if name in names}
    assumed = frozenset({"weight_precision", "precision"})
    form = list_formats()[0]
    reading = Reading(file=Path(), form=form, row=vary(told, **figures), findings=(), assumed=assumed)
    causes = find_causes(source, {1: (reading, plain)}, "auto")
    rows = [one.row for one in causes]
    assert [one.change for one in rows if one.misfit < 1e-9] == [change]
    assert rows[0].inside_count == 1
    assert change in [one.change for one in rows if one.inside_count]


SAYING: Final[dict[str, dict[str, Any]]] = {
    "trtexec.log": {"hardware": "l4"},
    "benchmark_app.log": {"model": "resnet18", "hardware": "xeon_8490h"},
    "llama_bench.json": {"hardware": "rtx_4090"},
    "vllm.json": {"hardware": "l40s", "precision": "bf16", "devices": 4},
}
"""Log -> options that state what it does not."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SAYING)
def test_no_cause_contradicts_what_a_log_or_an_option_states(name: str, tmp_path: Path) -> None:
    written = (DATA / name).read_text(encoding="utf-8").replace("[I] Precision: FP32\n", "[I] Precision: FP32+FP16\n")
    (tmp_path / name).write_text(written, encoding="utf-8")
    (reading, *_) = read_file(tmp_path / name, {**NOTHING, **SAYING[name]})
    stated = [cause for cause, columns in STATED.items() if columns.isdisjoint(reading.assumed)]
    assert "precision" in stated  # 'tf32 instead of fp16' is no cause of a log that says --fp16
    source = Source(path=tmp_path / "a.duckdb")
    (found,) = forecast(source, [Case(row=reading.row)])
    supposed = list(list_suppositions(source, reading.row, found, reading.assumed))
    assert supposed
    assert not {one.cause for one, _ in supposed} & set(stated)
    everything = list_suppositions(
        source, reading.row, found, {column for columns in STATED.values() for column in columns}
    )
    assert "precision" in {one.cause for one, _ in everything}


def test_a_log_without_tf32_is_true_fp32(tmp_path: Path) -> None:
    written = (DATA / "trtexec.log").read_text(encoding="utf-8")
    assert "TF32 is enabled" in written
    (tmp_path / "a.log").write_text(written.replace("TF32 is enabled", "TF32 is disabled"), encoding="utf-8")
    row = read_file(tmp_path / "a.log", {**NOTHING, "hardware": "l4"})[0].row
    assert isinstance(row, Measurement)
    assert (row.precision, row.matmul_precision) == ("fp32", "highest")


@pytest.mark.slow
def test_a_cause_that_is_known_is_found_of_a_served_model(tmp_path: Path) -> None:
    told = read_file(DATA / "llama_bench.json", {**NOTHING, "hardware": "rtx_4090"})[0].row
    told = vary(told, total_tokens_per_s=None, file_bytes=None)
    is_so = vary(told, weight_precision="awq")
    check_cause(Source(path=tmp_path / "a"), told, is_so, CHANGES["weight_precision"](new="awq", old="gguf_q4_k_m"))


@pytest.mark.slow
def test_a_cause_that_is_known_is_found_of_a_single_run(own_database: Path) -> None:
    told = read_file(DATA / "timer.txt", {**NOTHING, "hardware": "l4", "precision": "fp16", "batch": 1})[0].row
    told, source = vary(told, runtime="fused"), Source(path=own_database)
    check_cause(source, told, vary(told, precision="int8"), "int8 instead of fp16")
    check_cause(source, told, vary(told, hardware="l4@1020MHz"), CHANGES["clock"](share=0.5))


@pytest.mark.slow
def test_a_file_is_verified_kept_and_refused(joulemap: Run, tmp_path: Path) -> None:
    done = joulemap("verify", DATA / "vllm.json", "--keep", "--format", "json")
    assert done.returncode == ExitCode.OK, done.stderr
    data = json.loads(done.stdout)
    scores = [one for one in data["facts"] if one["fact"] == "score"]
    assert [one["is_inside"] for one in scores] == [True] * 4
    assert [one["measured"]["value"] for one in scores] == [row["measured"] for row in data["rows"]]
    errors = sorted(abs(math.log(row["ratio"])) for row in data["rows"])
    assert show_share(math.expm1(0.5 * (errors[1] + errors[2]))) in data["answer"]
    assert [row["quantity"] for row in data["rows"]][:2] == ["time_to_first_token_s", "inter_token_latency_s"]
    (stored,) = (one["values"] for one in data["facts"] if one.get("kind") == "imported")
    assert stored == {"fresh": 1, "known": 0}
    slow = tmp_path / "slow.json"
    slow.write_text((DATA / "vllm.json").read_text().replace('"mean_ttft_ms": ', '"mean_ttft_ms": 1'))
    outside = joulemap("verify", slow, "--format", "json")
    assert outside.returncode == ExitCode.OUTSIDE
    assert [row["is_inside"] for row in json.loads(outside.stdout)["rows"]].count(False) == 1
    assert outside.stderr == "joulemap: 1 of 4 measurements is outside the 80 % interval of its prediction\n"
    wrong = joulemap("verify", DATA / "README.md")
    assert wrong.returncode == ExitCode.CATALOGUE
    assert wrong.stderr.count("\n") == 1
    workspace = Workspace(tmp_path / "joulemap.duckdb")
    assert [row.model for row in workspace.served_measurements("l40s", origin="vllm.json")] == ["llama-3.2-3b"]
    with pytest.raises(UsageError, match="files of one kind"):
        workspace.verify([DATA / "vllm.json", DATA / "trtexec.log"], hardware="l40s", calibrate=True)
    with pytest.raises(UsageError, match="--passes is 0"):
        workspace.verify(DATA / "vllm.json", passes=0)


def test_rows_of_a_file_are_records_of_measurements() -> None:
    kinds = {type(read_file(DATA / name, state(name))[0].row) for name in SAMPLES}
    assert kinds == {Measurement, ServingRow}


@pytest.mark.slow
def test_a_measured_file_names_no_path(tmp_path: Path, joulemap: Run) -> None:
    """A configuration beside it, which a person may name, is not opened for the file's sake."""
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
              "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256}  # fmt: skip
    (tmp_path / "own.json").write_text(json.dumps(config))
    told = json.loads((DATA / "vllm.json").read_text())
    for name in (str(tmp_path / "own.json"), "./own.json", "/dev/zero", "/etc/passwd"):
        (tmp_path / "run.json").write_text(json.dumps({**told, "model_id": name}))
        done = joulemap("verify", "run.json", "--hardware", "l40s")
        assert (done.returncode, len(done.stderr.splitlines())) == (ExitCode.UNKNOWN_NAME, 1)
        assert "unknown language model" in done.stderr
    stated = joulemap("verify", "run.json", "--hardware", "l40s", "--model", "./own.json")
    assert stated.returncode == ExitCode.OUTSIDE, stated.stderr


def read_changed(name: str, tmp_path: Path, pattern: str, value: str) -> Any:
    """Return the first reading of a sample in which a pattern is replaced."""
    text = (DATA / name).read_text(encoding="utf-8")
    changed = re.sub(pattern, lambda _: value, text)
    assert changed != text
    (tmp_path / name).write_text(changed, encoding="utf-8")
    return read_file(tmp_path / name, state(name))[0]


UNUSABLE: Final = {
    "vllm.json": (r'(?<="output_throughput": )[\d.]+', ("NaN", "Infinity", "0", "-3", "null", '""', '"fast"'),
                  "output_tokens_per_s"),
    "printed.txt": (r"(?<=Output token throughput \(tok/s\): ) *[\d.]+", ("nan", "inf", "0", "-1", ""),
                    "output_tokens_per_s"),
    "aiperf.json": (r'(?<="output_token_throughput": {"unit": "tokens/sec", "avg": )[\d.]+', ("NaN", "null", "0"),
                    "output_tokens_per_s"),
    "aiperf.csv": (r"(?<=Output Token Throughput \(tokens/sec\),)[\d.]+", ("nan", "", "-inf", "0"),
                   "output_tokens_per_s"),
    "inferencex.json": (r'(?<="tput_per_gpu": )[\d.]+', ("NaN", "null", "-1"), "total_tokens_per_s"),
    "trtllm.json": (r'(?<="total_energy_j": )[\d.]+', ("NaN", "0"), "energy_per_request_j"),
    "guidellm.json": (r'(?<="time_to_first_token_ms": {"successful": {"mean": )[\d.]+', ("NaN", "null"),
                      "time_to_first_token_s"),
}  # fmt: skip
"""Sample -> the number that is replaced, its replacements, and the quantity that then cannot be scored."""


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in UNUSABLE for value in UNUSABLE[name][1]])
def test_an_unusable_number_is_named_as_not_scored(name: str, value: str, tmp_path: Path) -> None:
    pattern, _, quantity = UNUSABLE[name]
    reading = read_changed(name, tmp_path, pattern, value)
    assert list(reading.unscored) == [quantity]
    assert getattr(reading.row, quantity) is None
    assert read_file(DATA / name, state(name))[0].unscored == {}


def test_an_unscored_number_is_counted_in_the_answer(joulemap: Run, tmp_path: Path) -> None:
    text = (
        (DATA / "vllm.json").read_text().replace('"output_throughput": 2249.247363167692', '"output_throughput": NaN')
    )
    (tmp_path / "run.json").write_text(text)
    done = joulemap("verify", "run.json", "--format", "json")
    assert done.returncode == ExitCode.OK, done.stderr
    data = json.loads(done.stdout)
    assert [one["is_inside"] for one in data["facts"] if one["fact"] == "score"] == [True] * 3
    (row,) = [row for row in data["rows"] if row["measured"] is None]
    assert (row["quantity"], row["ratio"], row["is_inside"]) == ("output_tokens_per_s", None, None)
    (refusal,) = (one for one in data["facts"] if one["fact"] == "refusal")
    assert (refusal["code"], refusal["reason"]) == ("unusable", row["reason"])
    assert refusal["values"] == {"field": "output_throughput", "value": "nan", "bound": "above"}


def test_the_exit_code_tells_that_nothing_was_scored(joulemap: Run) -> None:
    """The board has no fp64, so nothing is predicted for the only measured number."""
    stated = ("--hardware", "kpu_t256", "--precision", "fp64", "--batch", "1", "--format", "json")
    done = joulemap("verify", DATA / "timer.txt", *stated)
    assert (done.returncode, done.stderr.count("\n")) == (ExitCode.UNSCORED, 1)
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["predicted"], row["is_inside"]) == (None, None)
    assert "no fp64" in row["reason"]


@pytest.mark.parametrize("value", ["nan", "", "-1.0", "inf"])
def test_a_window_without_a_number_is_left_out_of_the_median(value: str, tmp_path: Path) -> None:
    """Two windows of 355.3059 J remain of three: 1.184353 J per pass of 300."""
    text = (DATA / "zeus.csv").read_text(encoding="utf-8")
    (tmp_path / "zeus.csv").write_text(f"{text.rstrip()}\n1700000002.0,resnet50,0.7,{value}\n", encoding="utf-8")
    (one,) = read_file(tmp_path / "zeus.csv", state("zeus.csv"))
    assert isinstance(one.row, Measurement)
    assert_close(one.row.energy_j, 355.3059 / 300.0)
    assert count_left_out(one)[:2] == (1, 3)


def test_reasons_of_runs_that_are_left_out_are_counted(tmp_path: Path) -> None:
    whole = (DATA / "sglang.jsonl").read_text(encoding="utf-8").strip()
    empty = whole.replace('"completed": 320', '"completed": 0')
    broken = re.sub(r'(?<="mean_e2e_latency_ms": )[\d.]+', "NaN", re.sub(r"(?<=t_ms\": )[\d.]+", "NaN", whole))
    (tmp_path / "sweep.jsonl").write_text("\n".join((whole, empty, empty, broken)))
    one = read_file(tmp_path / "sweep.jsonl", state("sglang.jsonl"))[0]
    count, total, reasons = count_left_out(one)
    assert (count, total, [number for _, number in reasons]) == (3, 4, [2, 1])


def test_a_sum_over_devices_needs_each_of_them() -> None:
    assert find({"a": [{"w": 300.0}, {"w": 200.0}]}, "a.+.w") == 500.0
    for value in (float("nan"), None, "off", -1.0):
        assert math.isnan(find({"a": [{"w": 300.0}, {"w": value}]}, "a.+.w"))


def test_a_median_in_place_of_an_unusable_mean_is_told(tmp_path: Path) -> None:
    reading = read_changed("vllm.json", tmp_path, r'(?<="mean_ttft_ms": )[\d.]+', "NaN")
    assert_close(reading.row.time_to_first_token_s, 0.052999333499883505)
    (found,) = (one.values for one in reading.findings if one.kind == "substitute")
    assert (found["field"], found["value"], found["other"]) == ("mean_ttft_ms", "nan", "median_ttft_ms")


IMPOSSIBLE: Final = (1e308, 5e-324, 10**18, -(10**18), 10**400, float("nan"), True, "1e308")


def check_impossible(value: Any, every: slice, tmp_path: Path, joulemap: Run) -> None:
    """Ask about a file with the value in place of those of its numbers."""
    told = json.loads((DATA / "vllm.json").read_text())
    numbers = [name for name, one in told.items() if isinstance(one, int | float)]
    for name in [*numbers, "request_rate"][every]:
        (tmp_path / "run.json").write_text(json.dumps({**told, name: value}))
        done = joulemap("verify", "run.json", "--hardware", "l40s", "--format", "json")
        assert done.returncode in (ExitCode.OK, ExitCode.USAGE, ExitCode.CATALOGUE), (name, done.stderr)
        assert len(done.stderr.splitlines()) == (done.returncode != 0)


@pytest.mark.sample(1)
@pytest.mark.parametrize("place", range(len(IMPOSSIBLE)), ids=[str(one)[:10] for one in IMPOSSIBLE])
def test_a_number_that_nobody_can_have_measured_ends_in_one_line(place: int, tmp_path: Path, joulemap: Run) -> None:
    """Each value in some of the places, each place with some value."""
    check_impossible(IMPOSSIBLE[place], slice(place, None, len(IMPOSSIBLE)), tmp_path, joulemap)


@pytest.mark.parametrize("cell", ["1e308", "5e-324", "1e18"])
@pytest.mark.parametrize("column", ["latency_s", "energy_j", "power_w", "throughput_per_s"])
def test_such_a_row_of_a_table_is_not_imported(column: str, cell: str, tmp_path: Path, joulemap: Run) -> None:
    head = f"hardware,model,precision,batch,runtime,{column},source"
    (tmp_path / "m.csv").write_text(f"{head}\nl4,resnet18,fp32,1,eager,{cell},me\n")
    done = joulemap("measurements", "import", "m.csv")
    assert (done.returncode, len(done.stderr.splitlines())) == (9, 1)


def test_a_dash_reads_what_a_tool_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = (DATA / "llama_bench.md").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(printed), encoding="utf-8"))
    rows = [one.row for path in (Path("-"), DATA / "llama_bench.md") for one in read_file(path, NOTHING)]
    piped, read = (
        [(row.model, row.hardware, row.total_tokens_per_s) for row in some if isinstance(row, ServingRow)]
        for some in (rows[: len(rows) // 2], rows[len(rows) // 2 :])
    )
    assert piped == read != []


TABLE = """| model | size | params | backend | ngl | test | t/s |
| --- | ---: | ---: | --- | --: | ---: | ---: |
| llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA | 99 | pp512 | 2000.0 |
| llama 8B Q4_K - Medium | 4.58 GiB | 8.03 B | CUDA | 99 | tg128 | 40.0 |
"""
"""Rates of one model, as llama-bench prints them; invented."""


PRINTED = {
    "llama 8B Q4_K - Medium |  4.58 GiB | 8.03 B": "llama-3.1-8b",
    "llama 1B Q8_0 | 1.22 GiB | 1.24 B": "llama-3.2-1b",
    "llama 7B Q4_K - Medium | 4.07 GiB | 7.25 B": "mistral-7b",
    "llama 7B Q4_0 | 3.56 GiB | 6.74 B": "llama-7b",
    "llama 13B Q4_K - Medium | 13.34 GiB | 23.57 B": "mistral-small-3.1-24b",
    "qwen2 14B Q4_K - Medium | 8.37 GiB | 14.77 B": "qwen2.5-14b",
    "qwen3 14B Q4_K - Medium | 8.38 GiB | 14.77 B": "qwen3-14b",
    "glm4moe 106B.A12B Q4_K - Medium | 68.01 GiB | 106.85 B": "glm-4.5-air",
    "gpt-oss 20B MXFP4 MoE | 11.27 GiB | 20.91 B": "gpt-oss-20b",
}
"""Type, size and parameters as llama-bench prints them -> model.

llama.cpp names llama's types by layers alone: Mistral 7B, with 32, is a `llama 7B`, and Mistral Small 24B, with 40, a
`llama 13B`. Source: llama.cpp, llama-model.cpp, load_hparams.
"""


@pytest.mark.parametrize(("printed", "model"), PRINTED.items())
def test_a_table_of_llama_bench_names_its_model_by_its_parameters(tmp_path: Path, printed: str, model: str) -> None:
    file = tmp_path / "bench.md"
    file.write_text(
        "| model | size | params | backend | ngl | test | t/s |\n| --- | ---: | ---: | --- | --: | ---: | ---: |\n"
        f"| {printed} | CUDA | 99 | tg128 | 40.0 |\n"
    )
    (one,) = read_file(file, {**NOTHING, "hardware": "rtx_4090"})
    assert one.row.model == model


@pytest.mark.parametrize(
    ("backend", "engine"),
    [("Vulkan", "llamacpp@vulkan"), ("ROCm", "llamacpp@rocm"), ("SYCL,RPC", "llamacpp@sycl"), ("CUDA", "llamacpp")],
)
def test_llama_bench_says_which_backend_ran(tmp_path: Path, backend: str, engine: str) -> None:
    (tmp_path / "bench.md").write_text(TABLE.replace("CUDA", backend))
    text = (DATA / "llama_bench.json").read_text(encoding="utf-8")
    (tmp_path / "bench.json").write_text(text.replace('"backends": "CUDA"', f'"backends": "{backend}"'))
    for name in ("bench.md", "bench.json"):
        rows = [one.row for one in read_file(tmp_path / name, {**NOTHING, "hardware": "rx_7900_xtx"})]
        assert {row.engine for row in rows if isinstance(row, ServingRow)} == {engine}
        dates = {row.date for row in rows if isinstance(row, ServingRow)}
        assert name == "bench.md" or dates == {row["test_time"][:10] for row in json.loads(text)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"n_depth": 0', '"no_kv_offload": true'),
        ('"n_depth": 0', '"tensor_buft_overrides": "blk.1.attn=CPU"'),
        ('RTX 4080"', 'RTX 4080, NVIDIA GeForce RTX 3090", "split_mode": "row"'),
        ('"n_gpu_layers": -1', '"n_gpu_layers": 20, "cpu_info": "NVIDIA GeForce RTX 4080"'),
        ('"avg_ts": 7100.002165', '"avg_ts": 0.0'),
        ('"avg_ts": 7100.002165', '"avg_ts": NaN'),
    ],
)
def test_a_run_whose_division_is_not_predicted_is_left_out(tmp_path: Path, old: str, new: str) -> None:
    first, *others = (DATA / "llama_bench.json").read_text(encoding="utf-8").split("},")
    (tmp_path / "bench.json").write_text("},".join((first.replace(old, new), *others)))
    read = read_file(tmp_path / "bench.json", {**NOTHING, "hardware": "rtx_4090"})
    whole = read_file(DATA / "llama_bench.json", {**NOTHING, "hardware": "rtx_4090"})
    assert [one.row.scope for one in read if isinstance(one.row, ServingRow)] == ["decode_step"]
    assert (count_left_out(read[0])[0], len(whole), count_left_out(whole[0])[0]) == (1, 2, 0)


TWO: Final = "NVIDIA GeForce RTX 5090, NVIDIA GeForce RTX 3090"


@pytest.mark.parametrize(
    ("stated", "hardware", "others", "split"),
    [
        ({"n_cpu_moe": 23}, "rtx_4080", "ryzen_7_7800x3d", "experts 36/23"),
        ({"n_cpu_moe": 99}, "rtx_4080", "ryzen_7_7800x3d", "experts 36/36"),
        ({"tensor_buft_overrides": r"\.ffn_.*_exps\.=CPU"}, "rtx_4080", "ryzen_7_7800x3d", "experts 36/36"),
        ({"tensor_buft_overrides": "exps=CPU"}, "rtx_4080", "ryzen_7_7800x3d", "experts 36/36"),
        ({"n_gpu_layers": 20}, "rtx_4080", "ryzen_7_7800x3d", "20/16"),
        ({"gpu_info": TWO}, "rtx_5090", "rtx_3090", "21/15"),
        ({"gpu_info": TWO, "tensor_split": "1.00/2.00"}, "rtx_5090", "rtx_3090", "12/24"),
        ({"gpu_info": TWO, "tensor_split": "0.00/36.00"}, "rtx_3090", "", ""),
        ({"gpu_info": TWO, "tensor_split": "26.00/10.00", "n_cpu_moe": 4}, "rtx_5090", "rtx_3090+ryzen_7_7800x3d",
         "experts 26/10/4"),
        ({"gpu_info": TWO, "split_mode": "none", "main_gpu": 1}, "rtx_3090", "", ""),
        ({"gpu_info": TWO, "devices": "CUDA1"}, "rtx_3090", "", ""),
        ({"gpu_info": TWO, "n_gpu_layers": 18, "tensor_split": "1.00/1.00"}, "rtx_5090", "rtx_3090+ryzen_7_7800x3d",
         "9/9/18"),
        ({"n_gpu_layers": 0}, "ryzen_7_7800x3d", "", ""),
    ],
)  # fmt: skip
def test_the_division_of_a_model_by_llama_bench_is_read(
    tmp_path: Path, stated: dict[str, Any], hardware: str, others: str, split: str
) -> None:
    run = {**json.loads((DATA / "llama_bench.json").read_text(encoding="utf-8"))[0], **stated}
    (tmp_path / "bench.json").write_text(json.dumps([run]))
    (one,) = read_file(tmp_path / "bench.json", {**NOTHING, "model": "gpt-oss-120b"})
    assert isinstance(one.row, ServingRow)
    assert (one.row.hardware, one.row.other_hardware, one.row.layer_split) == (hardware, others, split)


def test_the_processor_that_holds_a_part_of_a_model_must_be_known(tmp_path: Path) -> None:
    run = json.loads((DATA / "llama_bench.json").read_text(encoding="utf-8"))[0]
    (tmp_path / "bench.json").write_text(json.dumps([{**run, "cpu_info": "", "n_gpu_layers": 20}]))
    with pytest.raises(UsageError, match="--host"):
        read_file(tmp_path / "bench.json", NOTHING)
    (one,) = read_file(tmp_path / "bench.json", {**NOTHING, "host": "ryzen_9_5950x"})
    assert isinstance(one.row, ServingRow) and one.row.other_hardware == "ryzen_9_5950x"


@pytest.mark.parametrize(
    ("keys", "values", "cache", "left"),
    [("bf16", "f16", "", 0), ("q8_0", "q8_0", "int8", 0), ("q8_0", "f16", "", 1), ("q4_0", "q4_0", "", 1)],
)
def test_the_cache_of_llama_cpp_is_read(tmp_path: Path, keys: str, values: str, cache: str, left: int) -> None:
    first, *others = (DATA / "llama_bench.json").read_text(encoding="utf-8").split("},")
    kinds = f'"type_k": "{keys}", "type_v": "{values}", "n_depth"'
    first = re.sub(r'"type_[kv]": "\w+",', "", first).replace('"n_depth"', kinds, 1)
    (tmp_path / "bench.json").write_text("},".join((first, *others)))
    one, *rest = read_file(tmp_path / "bench.json", {**NOTHING, "hardware": "rtx_4090"})
    assert (len(rest) + left, count_left_out(one)[0]) == (1, left)
    assert isinstance(one.row, ServingRow) and one.row.cache_precision == cache


@pytest.mark.slow
def test_a_decode_rate_calibrates_its_engine_halfway_and_a_single_prompt_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOULEMAP_CALIBRATION", str(tmp_path / "calibration"))
    file = tmp_path / "bench.md"
    file.write_text(TABLE)
    workspace = Workspace(tmp_path / "runs.duckdb")

    def ask(**given: Any) -> dict[str, Any]:
        answer = workspace.verify(file, model="llama-3.1-8b", hardware="rtx_3060", **given)
        return {row.quantity: row for row in answer.rows}

    plain, fitted = ask(), ask(calibrate=True)
    decode, prompt = fitted["output_tokens_per_s"], fitted["total_tokens_per_s"]
    assert_close(decode.predicted, plain["output_tokens_per_s"].predicted)
    assert_close(decode.calibrated, math.sqrt(decode.predicted * 40.0), rel=1e-3)
    assert prompt.calibrated == prompt.predicted
    one = read_calibration(tmp_path / "calibration" / "rtx_3060.toml")
    assert list(one.coefficients) == ["served_time.llamacpp.decode"]
    assert_close(one.coefficients["served_time.llamacpp.decode"].value, math.sqrt(decode.predicted / 40.0))
    later, off = ask(), ask(calibration="none")
    assert_close(later["output_tokens_per_s"].predicted, decode.calibrated)
    assert_close(off["output_tokens_per_s"].predicted, decode.predicted)
    assert_close(later["output_tokens_per_s"].high / later["output_tokens_per_s"].low, decode.high / decode.low)
    again = ask(calibrate=True)
    assert_close(again["output_tokens_per_s"].calibrated, decode.calibrated)


@pytest.mark.slow
def test_a_chip_that_inherits_a_calibration_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOULEMAP_CALIBRATION", str(tmp_path / "calibration"))
    file = tmp_path / "bench.md"
    file.write_text(TABLE)
    with pytest.raises(UsageError, match="h200_sxm"):
        Workspace(tmp_path / "runs.duckdb").verify(file, model="llama-3.1-8b", hardware="h100_sxm5", calibrate=True)
    assert not (tmp_path / "calibration").exists()


@pytest.mark.parametrize("engine", ["llamacpp", "vllm"])
def test_devices_are_divided_as_the_engine_does(engine: str, tmp_path: Path) -> None:
    """Cards of llama.cpp have different layers, those of vLLM a part of each: so with a stated and another number."""
    row = read_file(DATA / "printed.txt", state("printed.txt", replicas=1, engine=engine))[0].row
    assert isinstance(row, ServingRow)
    source, everything = Source(path=tmp_path / "a.duckdb"), {name for names in STATED.values() for name in names}
    supposed = list_suppositions(source, row, Forecast(), everything)
    rows = (row, *(case.row for one, case in supposed if one.cause == "devices"))
    found = {
        (one.device_count, one.tensor_parallel, one.pipeline_parallel or 1)
        for one in rows
        if isinstance(one, ServingRow)
    }
    assert found == {(count, 1, count) if engine == "llamacpp" else (count, count, 1) for count in (2, 4, 8)}


def test_a_file_dated_in_the_future_is_not_kept(joulemap: Run, tmp_path: Path) -> None:
    path, database = tmp_path / "llama_bench.json", tmp_path / "own.duckdb"
    path.write_text((DATA / "llama_bench.json").read_text().replace("2025-", "2036-"))
    assert "2036-" in path.read_text()
    kept = joulemap("verify", str(path), "--hardware", "rtx_4090", "--keep", "--db", str(database))
    assert kept.returncode == ExitCode.CATALOGUE
    assert not database.exists()


@pytest.mark.parametrize("day", ["2026-02-31", "2099-01-01"])
def test_an_import_refuses_a_date_that_cannot_be(tmp_path: Path, day: str) -> None:
    database, table = tmp_path / "own.duckdb", tmp_path / "rows.csv"
    table.write_text(
        "hardware,model,precision,batch,runtime,latency_s,source,conditions\n"
        f"l4,resnet50,fp16,8,eager,0.0101,me,measured on {day}\n"
    )
    with pytest.raises(CatalogueError, match=f"nothing imported: resnet50 on l4: date is '{day}'"):
        Workspace(database).import_measurements(table)
    table.write_text(
        "source,hardware,model,scope,batch,inter_token_latency_s,date\n"
        f"me,rtx_4090,llama-3.1-8b,decode_step,1,0.01,{day}\n"
    )
    with pytest.raises(CatalogueError, match=f"nothing imported: llama-3.1-8b on rtx_4090: date is '{day}'"):
        Workspace(database).import_measurements(table)
    assert not database.exists()
