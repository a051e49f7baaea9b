"""llamafile: llama.cpp's numbers with its own, and LocalScore's means of nine tests."""

from __future__ import annotations

from engine_chip import find_chips, reach_bandwidth

from compare import assert_close
from joulemap.catalog.family import load_member
from joulemap.catalog.load import load_catalogue
from joulemap.physics.record.hardware import Hardware
from joulemap.wing.decoder.engine.stack import find_stack
from joulemap.wing.llm.row import read_serving_row
from joulemap.wing.llm.serving.predict import LOCALSCORE_TESTS, find_deployment
from served_case import predict_row

NOTE = "means over nine tests (prompts 16-4096, outputs 16-1536 tokens)"


def row(**more: str) -> dict[str, str]:
    cells = {"source": "x", "hardware": "l4", "model": "llama-3.2-1b", "weight_precision": "gguf_q4_k_m", "batch": "1"}
    return cells | {"scope": "request"} | more


def test_an_engine_like_another_has_its_numbers() -> None:
    parent, child = find_stack("llama.cpp"), find_stack("llamafile")
    assert child.value("memory_rate", "cpu") == parent.value("memory_rate", "cpu") < 1.0
    assert (parent.value("score_bytes", "gpu"), child.value("score_bytes", "gpu")) == (0.0, 20.0)
    assert (parent.value("memory_margin"), child.value("memory_margin")) == (2.0**30, 0.0)  # of llama.cpp 2026
    assert find_stack("llamafile", "2026").date == "2025"


def test_localscore_states_means_of_its_tests() -> None:
    hardware = load_catalogue().hardware["l4"]
    mean = predict_row(read_serving_row(row(engine="llamafile", notes=NOTE)), hardware)
    single = [
        predict_row(
            read_serving_row(row(engine="llamafile", prompt_tokens=str(prompt), output_tokens=str(output))), hardware
        )
        for prompt, output in LOCALSCORE_TESTS
    ]
    rates = [1.0 / (one.inter_token_latency_s or 1.0) for one in single]
    firsts = [(one.time_to_first_token_s or 0.0) + find_stack("llamafile").value("request") for one in single]
    assert_close(mean.output_tokens_per_s, sum(rates) / 9)
    assert_close(1.0 / (mean.inter_token_latency_s or 1.0), sum(rates) / 9)
    assert_close(mean.time_to_first_token_s, sum(firsts) / 9)


def test_scores_in_memory_cost_time_that_grows_with_the_square_of_the_prompt() -> None:
    hardware = load_catalogue().hardware["l4"]

    def first(engine: str, prompt: int) -> float:
        cells = row(engine=engine, date="2026", scope="prefill_step", prompt_tokens=str(prompt))
        return predict_row(read_serving_row(cells), hardware).time_to_first_token_s or 0.0

    short, long = (first("llamafile", size) - first("llama.cpp", size) for size in (2048, 4096))
    assert 3.5 < long / short < 4.5


def test_a_token_without_flash_attention_reads_keys_and_values_for_each_head() -> None:
    """Llama 3.2 1B: 16 layers of 32 heads; 512 bytes per head and key of the context."""
    hardware = load_member("apple_m3")

    def step(date: str, context: int) -> float:
        cells = row(hardware="apple_m3", engine="llama.cpp", date=date, scope="decode_step", prompt_tokens=str(context))
        return predict_row(read_serving_row(cells), hardware).inter_token_latency_s or 0.0

    more = (step("2024", 4096) - step("2024", 1024)) - (step("2025", 4096) - step("2025", 1024))
    assert_close(more, 16 * 32 * 3072 * 512 / (0.93 * 102.4e9), rel=1e-3)


def test_nested_scales_cost_an_m1_more_instructions_per_weight_until_2026() -> None:
    for name, date, weights, slots in (
        ("apple_m1", "2024", "gguf_q4_k_m", 13.0),
        ("apple_m1", "2024", "gguf_q4_0", 5.0),
        ("apple_m3", "2024", "gguf_q4_k_m", 5.0),
        ("apple_m1", "2026", "gguf_q4_k_m", 5.0),
    ):
        hardware = load_member(name)
        cells = row(hardware=name, engine="llama.cpp", date=date, scope="decode_step", weight_precision=weights)
        few, _ = find_chips(find_deployment(read_serving_row(cells), hardware))
        assert few.coefficients["issue_slots.streamed"].value == slots


def test_power_limits_no_prompt_on_apple_graphics() -> None:
    """Prompts of a 7B model take the same time per core and clock on chips of one generation (discussion 4167)."""

    def rate(name: str) -> float:
        hardware = find_chip(name)
        cells = row(hardware=name, engine="llama.cpp", date="2024", scope="prefill_step", prompt_tokens="512")
        first = predict_row(read_serving_row(cells | {"model": "llama-2-7b"}), hardware).time_to_first_token_s or 1.0
        return 1.0 / first / hardware.unit_count.value / hardware.clock.value

    for generation in (
        ("apple_m1_pro_14gpu", "apple_m1_ultra"),
        ("apple_m2", "apple_m2_max"),
        ("apple_m4", "apple_m4_max"),
    ):
        low, high = sorted(map(rate, generation))
        assert high / low < 1.1


def test_performance_cores_of_apple_share_no_number_with_its_graphics() -> None:
    hardware = load_member("apple_m1_cpu")
    cells = row(hardware=hardware.id, engine="llama.cpp", date="2025", scope="decode_step")
    few, _ = find_chips(find_deployment(read_serving_row(cells), hardware))
    memory, cores = 68.3e9, 5.5 * 4 * 3.01e9
    assert_close(reach_bandwidth(few), (memory**-4 + cores**-4) ** -0.25)


def test_prompts_on_processors_take_a_share_of_the_peak_whatever_libraries_reach() -> None:
    """Two peaks of 16 MACs a clock and core: OpenVINO was measured to reach 0.9 of one and 0.59 of the other."""
    for name in ("core_i7_1185g7", "core_i7_8700k"):
        hardware = find_chip(name)
        cells = row(hardware=name, engine="llama.cpp", date="2025", scope="prefill_step")
        _, many = find_chips(find_deployment(read_serving_row(cells), hardware))
        reached = many.peaks["fp32"].rate.value * many.coefficients["gemm_efficiency.vector"].value
        assert_close(reached, 0.49 * 32 * hardware.unit_count.value * hardware.clock.value)


def find_chip(name: str) -> Hardware:
    own = load_catalogue().hardware
    return own[name] if name in own else load_member(name)
