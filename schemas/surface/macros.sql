-- What views and queries share.

-- Exact femtojoules to the nearest double; those that a double does not hold as decimals, then as the reading of digits.
CREATE MACRO joules(energy_fj) AS
    CASE
        WHEN abs(energy_fj) <= 9007199254740992 THEN CAST(energy_fj AS DOUBLE) / 1e15
        ELSE CAST(CAST(CAST(energy_fj AS DECIMAL(22, 0)) * CAST('0.000000000000001' AS DECIMAL(16, 15)) AS VARCHAR) AS DOUBLE)
    END;

-- Femtoseconds to seconds.
CREATE MACRO seconds(latency_fs) AS CAST(latency_fs AS DOUBLE) / 1e15;

-- The hardware_fact that tells which share of the published bandwidth a class sustains: a GPU's depends on its memory.
CREATE MACRO dram_efficiency_of(architecture, memory_type) AS
    'coefficient.dram_efficiency' || CASE
        WHEN architecture <> 'gpu' THEN ''
        WHEN starts_with(memory_type, 'HBM') THEN '.stacked'
        WHEN ends_with(memory_type, 'with ECC') THEN '.protected'
        ELSE '.planar'
    END;

-- A share of a whole, both whole numbers of any size; null of nothing.
CREATE MACRO fraction(share, whole) AS CAST(share AS DOUBLE) / nullif(CAST(whole AS DOUBLE), 0e0);

-- Whether a runtime makes one kernel of several operators, as MERGING of domain/configuration.py says.
CREATE MACRO is_merging(runtime) AS runtime IN ('fused', 'engine');

-- A share that is at most 1 but for rounding: times are whole femtoseconds.
CREATE MACRO at_most_whole(share) AS CASE WHEN share > 1e0 AND share < 1e0 + 1e-9 THEN 1e0 ELSE share END;

-- What of a peak is used by MACs, of two operations each, in a time.
CREATE MACRO utilization_of(mac_count, time_fs, peak_ops_per_s) AS
    at_most_whole(2e0 * CAST(mac_count AS DOUBLE) / nullif(seconds(time_fs), 0e0) / peak_ops_per_s);

-- The additive share of an energy-delay product: (E_i T + E t_i) / 2.
CREATE MACRO edp_share(energy_fj, latency_fs, run_energy_fj, run_latency_fs) AS
    (joules(energy_fj) * seconds(run_latency_fs) + joules(run_energy_fj) * seconds(latency_fs)) / 2e0;

-- Whether energy of a common category is what the architecture adds to the work itself: neither arithmetic nor off-chip
-- memory nor the board's or a host's, nor drawn whatever is computed.
CREATE MACRO is_overhead(common_category) AS common_category NOT IN ('compute', 'off_chip_memory', 'board', 'host', 'static');

-- What the voltage of a run does to the price of an action: memory off the chip, the board and static power do not follow it,
-- but the residual of units does. The voltage is that of the chip, so nothing that its host spends follows it.
CREATE MACRO voltage_factor_of(category, common_category, action, voltage_factor) AS
    CASE WHEN common_category = 'host' THEN 1e0
    WHEN category <> 'unattributed'
        AND NOT (action LIKE 'unattributed_%_cycle' AND action <> 'unattributed_memory_cycle')
        AND common_category IN ('off_chip_memory', 'communication', 'board', 'host', 'static') THEN 1e0
    ELSE coalesce(voltage_factor, 1e0) END;

-- Energy of a group of ledger lines by part, which sum to it, and what of it is architectural overhead; exact.
CREATE MACRO energy_by_part(part, common_category, energy_fj) AS {
    'energy_fj': sum(energy_fj),
    'compute_fj': sum(CASE WHEN part = 'compute' THEN energy_fj ELSE 0 END),
    'memory_fj': sum(CASE WHEN part = 'memory' THEN energy_fj ELSE 0 END),
    'control_fj': sum(CASE WHEN part = 'control' THEN energy_fj ELSE 0 END),
    'static_fj': sum(CASE WHEN part = 'static' THEN energy_fj ELSE 0 END),
    'overhead_fj': sum(CASE WHEN is_overhead(common_category) THEN energy_fj ELSE 0 END)
};

-- What a model was built with, as it stands at the end of a workload's source.
CREATE MACRO model_arguments(source) AS regexp_extract(source, '\((.*)\)$', 1);

-- The kind of a single operator, from its name with sizes; empty for any other model.
CREATE MACRO operator_kind(model) AS regexp_extract(
    model,
    '^(gemm|bmm|conv2d|attention|experts|scan|softmax|layer_norm|rms_norm|embedding|rotary|gated|elementwise|batch_norm'
    || '|max_pool2d|global_avg_pool|all_reduce|all_gather|reduce_scatter|all_to_all|send)\(',
    1
);

-- Stored half-width of the metric's logarithm, in a row of internal.run_total; 0 for a metric without an error.
CREATE MACRO metric_half_width(metric_name, total) AS
    CASE find_metric(metric_name).half_width_column
        WHEN 'latency_half_width' THEN total.latency_half_width
        WHEN 'energy_half_width' THEN total.energy_half_width
        WHEN 'edp_half_width' THEN total.edp_half_width
        WHEN 'power_half_width' THEN total.power_half_width
        ELSE 0e0
    END;

-- The value of a metric in a row that has a column for it: one of runs or of cube.cost.
CREATE MACRO metric_value(metric_name, one) AS
    coalesce(
        CAST(to_json(one) ->> find_metric(metric_name).column_name AS DOUBLE),
        CASE
            WHEN (to_json(one) -> find_metric(metric_name).column_name) IS NULL
                THEN error('the metric ' || metric_name || ' is not known of these runs: it needs prices and use')
        END
    );

-- A value as a cost: lower is better. And how many times better a value is than another one: above 1 where it is.
CREATE MACRO as_cost(is_higher_better, value) AS CASE WHEN is_higher_better THEN -value ELSE value END;
CREATE MACRO better_ratio(is_higher_better, value, other) AS
    CASE WHEN is_higher_better THEN value / nullif(other, 0e0) ELSE other / nullif(value, 0e0) END;

-- What stands for one way of paying, rented or bought; null for neither.
CREATE MACRO by_way(way, rented, bought) AS CASE way WHEN 'rented' THEN rented WHEN 'bought' THEN bought END;

-- A price with who asks it and when, for people.
CREATE MACRO tell_rent(usd, told) AS concat_ws(', ', format('{:.4g} USD/h', usd), nullif(told, ''));
CREATE MACRO tell_purchase(usd, told) AS concat_ws(', ', format('{:,.0f} USD', usd), nullif(told, ''));

-- Order of the quantities that predictions are scored in.
CREATE MACRO quantity_place(quantity) AS list_position(
    ['latency_s', 'throughput_per_s', 'energy_j', 'time_to_first_token_s', 'inter_token_latency_s', 'request_latency_s',
     'output_tokens_per_s', 'total_tokens_per_s', 'energy_per_output_token_j', 'energy_per_request_j', 'power_w',
     'wall_power_w', 'peak_memory_bytes'],
    quantity
);

-- Half-width of the finest group of measurements that a prediction of a served model is in. An engine is its name and its
-- release, of which the name alone is a group too.
CREATE MACRO serving_scale_of(of_quantity, of_vendor, of_engine, of_work, of_hardware) AS (
    SELECT max_by(s.half_width, s.level)
    FROM internal.serving_scale AS s
    WHERE s.quantity = of_quantity
        AND s.vendor IN ('', of_vendor)
        AND s.engine IN ('', of_engine, split_part(of_engine, ' ', 1))
        AND s.work IN ('', of_work)
        AND s.hardware IN ('', of_hardware)
);

-- Quantity whose scales hold for a quantity that was measured in a scope: a first token under load has scales of its own.
CREATE MACRO name_served_scale(quantity, scope) AS CASE
    WHEN quantity = 'time_to_first_token_s' AND scope = 'steady_serving' THEN 'loaded_time_to_first_token_s'
    ELSE quantity
END;

-- Boundary of the joules and watts of a served model: MEASURED_AT of domain/configuration.py; the board where none is stated.
CREATE MACRO boundary_of(stated) AS CASE
    WHEN stated = 'chip' THEN 'chip'
    WHEN stated IN ('system', 'wall', 'node') THEN 'system'
    ELSE 'board'
END;

-- Time or rate that an energy of a served model grows with: find_served_time of domain/doubt.py.
CREATE MACRO served_time_of(of_quantity, of_scope) AS CASE of_quantity
    WHEN 'energy_per_output_token_j' THEN 'output_tokens_per_s'
    WHEN 'energy_per_request_j'
        THEN CASE of_scope WHEN 'prefill_step' THEN 'time_to_first_token_s' ELSE 'request_latency_s' END
END;

-- Half-width of the energy of a served model from those of its time and of its power: join_served_energy of domain/doubt.py.
CREATE MACRO served_energy_half_width(time_half_width, power_half_width) AS sqrt(
    pow(time_half_width, 2) + pow(power_half_width, 2) - 2e0 * 0.4e0 * time_half_width * power_half_width
);

-- Half-width of what is predicted of a served model. That of an energy is of its time and of the power together; `power_part`
-- is the power over what is left of it where a measurement has its idle power subtracted, else 1.
CREATE MACRO serving_half_width(of_quantity, of_vendor, of_engine, of_work, of_hardware, of_scope, power_part) AS
    CASE
        WHEN served_time_of(of_quantity, of_scope) IS NULL
            THEN serving_scale_of(name_served_scale(of_quantity, of_scope), of_vendor, of_engine, of_work, of_hardware)
        ELSE served_energy_half_width(
            serving_scale_of(served_time_of(of_quantity, of_scope), of_vendor, of_engine, of_work, of_hardware),
            power_part * serving_scale_of('power_w', of_vendor, of_engine, of_work, of_hardware)
        )
    END;

-- What a run is of, as errors of predictions are told apart: a sort of whole model, or a kind of single operator.
CREATE MACRO work_of(model, whole) AS coalesce(nullif(operator_kind(model), ''), whole);

-- The hardware that one is a variant of, as in l4[tdp=60W]; itself where it is none.
CREATE MACRO board_of(hardware) AS split_part(hardware, '[', 1);
