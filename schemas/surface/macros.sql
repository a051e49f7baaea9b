-- Macros of views and queries.

-- Exact femtojoules to joules as the nearest DOUBLE. Numbers above 2^53 go through a decimal and its digits.
CREATE MACRO joules(energy_fj) AS
    CASE
        WHEN abs(energy_fj) <= 9007199254740992 THEN CAST(energy_fj AS DOUBLE) / 1e15
        ELSE CAST(CAST(CAST(energy_fj AS DECIMAL(22, 0)) * CAST('0.000000000000001' AS DECIMAL(16, 15)) AS VARCHAR) AS DOUBLE)
    END;

-- Femtoseconds to seconds.
CREATE MACRO seconds(latency_fs) AS CAST(latency_fs AS DOUBLE) / 1e15;

-- Name of the hardware_fact with the sustained share of the published bandwidth; for a GPU, it depends on the memory.
CREATE MACRO dram_efficiency_of(architecture, memory_type) AS
    'coefficient.dram_efficiency' || CASE
        WHEN architecture <> 'gpu' THEN ''
        WHEN starts_with(memory_type, 'HBM') THEN '.stacked'
        WHEN ends_with(memory_type, 'with ECC') THEN '.protected'
        ELSE '.planar'
    END;

-- Common category with the memories of units and of the chip as one.
CREATE MACRO join_memories(category) AS
    CASE WHEN category IN ('unit_memory', 'chip_memory') THEN 'on_chip_memory' ELSE category END;

-- Quotient of two integers of any size; null if the divisor is 0.
CREATE MACRO fraction(share, whole) AS CAST(share AS DOUBLE) / nullif(CAST(whole AS DOUBLE), 0e0);

-- True if a runtime merges several operators into one kernel.
CREATE MACRO is_merging(runtime) AS runtime IN ({merging runtime});

-- A share whose true value is at most 1; times rounded to femtoseconds may put it slightly above.
CREATE MACRO at_most_whole(share) AS CASE WHEN share > 1e0 AND share < 1e0 + 1e-9 THEN 1e0 ELSE share END;

-- Share of a peak that MACs (two operations each) use in a time.
CREATE MACRO utilization_of(mac_count, time_fs, peak_ops_per_s) AS
    at_most_whole(2e0 * CAST(mac_count AS DOUBLE) / nullif(seconds(time_fs), 0e0) / peak_ops_per_s);

-- The additive share of an energy-delay product: (E_i T + E t_i) / 2.
CREATE MACRO edp_share(energy_fj, latency_fs, run_energy_fj, run_latency_fs) AS
    (joules(energy_fj) * seconds(run_latency_fs) + joules(run_energy_fj) * seconds(latency_fs)) / 2e0;

-- Part of the difference of an exact amount (fJ, fs or B) that follows from other counts at the mean amount of one count.
CREATE MACRO by_count(count_a, count_b, exact_a, exact_b) AS
    CASE
        WHEN count_a = count_b OR count_a = 0e0 OR count_b = 0e0 THEN 0
        ELSE CAST((count_b - count_a) * ((exact_a / count_a + exact_b / count_b) / 2e0) AS HUGEINT)
    END;

-- True if energy of a common category is architectural overhead: neither arithmetic, off-chip memory, board, unattributed, host nor
-- static.
CREATE MACRO is_overhead(common_category) AS common_category NOT IN (
    'compute', 'off_chip_memory', 'board', 'unattributed', 'host', 'static'
);

-- Factor of a run's voltage on the energy of an action. Off-chip memory, links, board, host and static power do not depend
-- on the voltage; unattributed losses of units do. The voltage is the chip's, so all energy of its host is excluded.
CREATE MACRO voltage_factor_of(category, common_category, action, voltage_factor) AS
    CASE WHEN common_category = 'host' THEN 1e0
    WHEN category <> 'unattributed'
        AND NOT (action LIKE 'unattributed_%cycle' AND action <> 'unattributed_memory_cycle')
        AND common_category IN ('off_chip_memory', 'communication', 'board', 'unattributed', 'host', 'static') THEN 1e0
    ELSE coalesce(voltage_factor, 1e0) END;

-- Energy of a group of ledger lines: the total, its parts, and its architectural overhead; exact.
CREATE MACRO energy_by_part(part, common_category, energy_fj) AS {
    'energy_fj': sum(energy_fj),
    'compute_fj': sum(CASE WHEN part = 'compute' THEN energy_fj ELSE 0 END),
    'memory_fj': sum(CASE WHEN part = 'memory' THEN energy_fj ELSE 0 END),
    'control_fj': sum(CASE WHEN part = 'control' THEN energy_fj ELSE 0 END),
    'static_fj': sum(CASE WHEN part = 'static' THEN energy_fj ELSE 0 END),
    'overhead_fj': sum(CASE WHEN is_overhead(common_category) THEN energy_fj ELSE 0 END)
};

-- Arguments of a model: the parenthesis at the end of a workload's source.
CREATE MACRO model_arguments(source) AS regexp_extract(source, '\((.*)\)$', 1);

-- Kind of a single operator, from its name with sizes, e.g. gemm; empty for any other model.
CREATE MACRO operator_kind(model) AS regexp_extract(
    model,
    '^(gemm|bmm|conv2d|attention|experts|scan|softmax|layer_norm|rms_norm|embedding|rotary|gated|elementwise|batch_norm'
    || '|max_pool2d|global_avg_pool|all_reduce|all_gather|reduce_scatter|all_to_all|send)\(',
    1
);

-- Value of a metric in a row of runs or of cube.cost; an error if the row has no column for it.
CREATE MACRO metric_value(metric_name, one) AS
    coalesce(
        CAST(to_json(one) ->> find_metric(metric_name).column_name AS DOUBLE),
        CASE
            WHEN (to_json(one) -> find_metric(metric_name).column_name) IS NULL
                THEN error('these rows have no metric ' || metric_name || ': it needs prices and a utilization, as in `joulemap cost`')
        END
    );

-- as_cost: the value with a sign such that lower is better. better_ratio: above 1 where value is better than other.
CREATE MACRO as_cost(is_higher_better, value) AS CASE WHEN is_higher_better THEN -value ELSE value END;
CREATE MACRO better_ratio(is_higher_better, value, other) AS
    CASE WHEN is_higher_better THEN value / nullif(other, 0e0) ELSE other / nullif(value, 0e0) END;

-- The argument of one form of payment, rented or bought; null for any other.
CREATE MACRO by_way(way, rented, bought) AS CASE way WHEN 'rented' THEN rented WHEN 'bought' THEN bought END;

-- Text with a price, its seller and its date.
CREATE MACRO describe_rent(usd, price_text) AS concat_ws(', ', format('{:.4g} USD/h', usd), nullif(price_text, ''));
CREATE MACRO describe_purchase(usd, price_text) AS concat_ws(', ', format('{:,.0f} USD', usd), nullif(price_text, ''));

-- Position of a quantity in tables of scores.
CREATE MACRO quantity_index(quantity) AS list_position(
    ['latency_s', 'throughput_per_s', 'energy_j', 'time_to_first_token_s', 'inter_token_latency_s', 'request_latency_s',
     'output_tokens_per_s', 'total_tokens_per_s', 'energy_per_output_token_j', 'energy_per_request_j', 'power_w',
     'wall_power_w', 'peak_memory_bytes'],
    quantity
);

-- Name of an engine without its backend and release: llamacpp of 'llamacpp@vulkan 2026', as name_bare_engine of wing/llm/error_scale.py.
CREATE MACRO bare_engine(of_engine) AS split_part(split_part(of_engine, ' ', 1), '@', 1);

-- Additional half-width of prompts of an engine without a named backend: find_unnamed_backend of wing/llm/error_scale.py.
CREATE MACRO unnamed_backend_width(of_architecture, of_vendor, of_engine) AS
    CASE WHEN of_architecture = 'gpu' AND of_vendor IN ('AMD', 'Intel') AND split_part(of_engine, ' ', 1) = 'llamacpp' THEN 0.9e0 ELSE 0e0 END;

-- Half-width of a time or power of a served model: that of the finest group of measurements that contains it, widened for
-- a server that nobody measured, as ServingScale.widen of wing/llm/error_scale.py. An engine is a name with or without a release.
CREATE MACRO serving_scale_of(of_quantity, of_vendor, of_engine, of_hardware) AS (
    SELECT max_by(
        sqrt(pow(s.half_width, 2) + pow(CASE
            WHEN s.quantity = 'power' THEN 0.15e0
            WHEN s.level < 2 THEN 0.25e0
            WHEN list_contains(string_split(s.chips, ' '), of_hardware) THEN 0.1e0
            ELSE 0.15e0
        END, 2)),
        s.level
    )
    FROM internal.serving_scale AS s
    WHERE s.quantity = of_quantity AND s.vendor IN ('', of_vendor) AND s.engine IN ('', bare_engine(of_engine))
);

-- Boundary of the energy and power of a served model, as MEASURED_AT of physics/record/configuration.py; board if none is stated.
CREATE MACRO boundary_of(stated) AS CASE
    WHEN stated = 'chip' THEN 'chip'
    WHEN stated IN ('system', 'wall', 'node') THEN 'system'
    ELSE 'board'
END;

-- Half-width of the energy of a served model from those of its time and of its power: join_served_energy of wing/llm/error_scale.py.
CREATE MACRO served_energy_half_width(time_half_width, power_half_width) AS sqrt(
    pow(time_half_width, 2) + pow(power_half_width, 2) - 2e0 * 0.4e0 * time_half_width * power_half_width
);

-- Half-width of a predicted quantity of a served model. That of an energy combines those of its time and of its power.
-- `power_part` is the power over the power without idle power if the measurement subtracts idle power, else 1.
-- `of_architecture` is the class of the hardware, `thin` the half-width that thinly measured numbers of the engine add to times.
CREATE MACRO serving_half_width(of_quantity, of_vendor, of_engine, of_hardware, of_scope, power_part, of_architecture := '', thin := 0e0) AS
    CASE
        WHEN of_quantity IN ('energy_per_output_token_j', 'energy_per_request_j') THEN served_energy_half_width(
            sqrt(
                pow(serving_scale_of('time', of_vendor, of_engine, of_hardware), 2) + pow(thin, 2)
                + CASE WHEN of_scope IN ({prompt scope}) THEN pow(unnamed_backend_width(of_architecture, of_vendor, of_engine), 2) ELSE 0e0 END
            ),
            power_part * serving_scale_of('power', of_vendor, of_engine, of_hardware)
        )
        WHEN of_quantity = 'power_w' THEN serving_scale_of('power', of_vendor, of_engine, of_hardware)
        ELSE sqrt(
            pow(serving_scale_of('time', of_vendor, of_engine, of_hardware), 2) + pow(thin, 2)
            + CASE WHEN of_quantity = 'time_to_first_token_s' OR of_scope IN ({prompt scope})
                THEN pow(unnamed_backend_width(of_architecture, of_vendor, of_engine), 2) ELSE 0e0 END
            + CASE WHEN of_quantity = 'time_to_first_token_s' AND of_scope IN ({loaded scope}) THEN pow(0.3e0, 2) ELSE 0e0 END
        )
    END;

-- Kind of work, by which prediction errors are grouped: the given kind of a whole model, or the kind of a single operator.
CREATE MACRO work_of(model, whole) AS coalesce(nullif(operator_kind(model), ''), whole);

-- Hardware without the changes of a variant: l4 for l4[tdp=60W].
CREATE MACRO board_of(hardware) AS split_part(hardware, '[', 1);
