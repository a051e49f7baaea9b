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

-- An energy-delay product.
CREATE MACRO edp_of(energy_fj, latency_fs) AS joules(energy_fj) * seconds(latency_fs);

-- What of a peak is used by MACs, of two operations each, in a time.
CREATE MACRO utilization_of(mac_count, time_fs, peak_ops_per_s) AS
    2e0 * CAST(mac_count AS DOUBLE) / nullif(seconds(time_fs), 0e0) / peak_ops_per_s;

-- The additive share of an energy-delay product: (E_i T + E t_i) / 2.
CREATE MACRO edp_share(energy_fj, latency_fs, run_energy_fj, run_latency_fs) AS
    (joules(energy_fj) * seconds(run_latency_fs) + joules(run_energy_fj) * seconds(latency_fs)) / 2e0;

-- Whether energy of a common category is what the architecture adds to the work itself: neither arithmetic nor off-chip
-- memory nor the board's, nor drawn whatever is computed.
CREATE MACRO is_overhead(common_category) AS common_category NOT IN ('compute', 'off_chip_memory', 'board', 'static');

-- Units that take what those of the hardware leave to them: their component in the ledger, what one is called, and the
-- hardware_fact that counts them (the processor of a board is one). And the place of one among them; where several have
-- a part, the last one counts.
CREATE MACRO other_units() AS [
    {'component': 'vpu', 'name': 'vector unit', 'quantity': 'geometry.core_count'},
    {'component': 'vector_engine', 'name': 'vector engine', 'quantity': 'geometry.vector_core_count'},
    {'component': 'misc_engine', 'name': 'misc engine', 'quantity': 'unit_count'},
    {'component': 'processor', 'name': 'board processor', 'quantity': ''}
];
CREATE MACRO other_unit_place(component) AS
    list_position(list_transform(other_units(), lambda unit: unit.component), component);

-- Of subgraphs of these runs in which no unit of the hardware has a part: which others do the work, and how many.
CREATE MACRO other_units_of(run_ids) AS TABLE
SELECT
    s.run_id,
    s.subgraph_index,
    other_units()[o.place].name AS unit_name,
    CASE WHEN o.place IS NOT NULL THEN CAST(coalesce(f.value, 1e0) AS INTEGER) END AS unit_count
FROM internal.run_subgraph AS s
JOIN (
    SELECT l.run_id, l.subgraph_index, max(a.place) AS place
    FROM (
        SELECT run_id, subgraph_index, action_id
        FROM internal.ledger_line
        WHERE run_id IN (SELECT unnest(run_ids))
        GROUP BY ALL
    ) AS l
    JOIN (SELECT action_id, other_unit_place(component) AS place FROM internal.action) AS a ON a.action_id = l.action_id
    GROUP BY l.run_id, l.subgraph_index
) AS o ON o.run_id = s.run_id AND o.subgraph_index = s.subgraph_index
JOIN internal.run AS r ON r.run_id = s.run_id
LEFT JOIN internal.hardware_fact AS f
    ON f.hardware_digest = r.hardware_digest AND f.quantity = other_units()[o.place].quantity
WHERE s.run_id IN (SELECT unnest(run_ids)) AND s.units_used_count = 0;

-- Whether an action is what the power limit says of busy units and memories, beyond the prices of all others.
CREATE MACRO is_unattributed(component, action) AS component = 'board' AND starts_with(action, 'unattributed_');

-- Least shares of a peak that are graded excellent, good, fair and poor: those that a person gave, or for an empty list
-- these. What is less is very poor.
CREATE MACRO grade_bounds(bounds) AS
    CASE len(bounds)
        WHEN 0 THEN [0.7e0, 0.5e0, 0.3e0, 0.1e0]
        WHEN 4 THEN bounds
        ELSE error('expected four bounds of grades, from excellent down to poor, found ' || len(bounds))
    END;
CREATE MACRO grades() AS ['excellent', 'good', 'fair', 'poor', 'very poor'];
CREATE MACRO grade(share, bounds) AS
    CASE
        WHEN share IS NOT NULL THEN grades()[1 + len(list_filter(grade_bounds(bounds), lambda least: share < least))]
    END;

-- The class of model sizes that a workload is in: the power of ten, of the operations of one inference, that it begins at.
CREATE MACRO flop_class(mac_count, batch) AS
    CASE
        WHEN mac_count < batch THEN 0
        ELSE CAST(pow(10, length(CAST(2 * mac_count // batch AS VARCHAR)) - 1) AS BIGINT)
    END;

-- Precisions from wide to narrow: the place of one among them.
CREATE MACRO precision_place("precision") AS
    list_position(['fp64', 'fp32', 'tf32', 'bf16', 'fp16', 'fp8', 'int8', 'fp4', 'int4'], split_part("precision", '/', 1));

-- Events of every class: those that follow from where subgraphs were placed, not from actions.
CREATE MACRO placement_events() AS TABLE
SELECT *
FROM (
    VALUES
    (-7, 'chip', 'cycles', 'clock cycle', '', 'that pass while it runs', 'latency x clock'),
    (-6, 'chip', 'kernels', 'kernel', '', 'that are launched', 'kernels of each subgraph'),
    (-5, 'chip', 'tiles', 'tile', '', 'pieces of outputs that units take', 'tiles of each subgraph'),
    (-4, 'chip', 'waves', 'wave', '', 'rounds of tiles over the units', 'tiles / units, rounded up'),
    (-3, 'chip', 'mac_slots', 'MAC', '', 'MACs of whole tiles', 'tiles x MACs of a tile'),
    (-2, 'chip', 'macs', 'MAC', 'mac_slots', 'that the model asks for', 'MACs of its operators'),
    (-1, 'chip', 'padding', 'MAC', 'mac_slots', 'slots without a MAC', 'mac_slots - macs')
) AS v (event_index, component, event, per, part_of, meaning, formula);

-- What the voltage of a run does to the price of an action: memory off the chip, the board and static power do not follow it.
CREATE MACRO voltage_factor_of(common_category, voltage_factor) AS
    CASE WHEN common_category IN ('off_chip_memory', 'communication', 'board', 'static') THEN 1e0
    ELSE coalesce(voltage_factor, 1e0) END;

-- Architectural overhead of a group of ledger lines, exact.
CREATE MACRO sum_overhead(common_category, energy_fj) AS
    sum(CASE WHEN is_overhead(common_category) THEN energy_fj ELSE 0 END);

-- Energy of a group of ledger lines by part, which sum to it, and what of it is architectural overhead; exact.
CREATE MACRO energy_by_part(part, common_category, energy_fj) AS {
    'energy_fj': sum(energy_fj),
    'compute_fj': sum(CASE WHEN part = 'compute' THEN energy_fj ELSE 0 END),
    'memory_fj': sum(CASE WHEN part = 'memory' THEN energy_fj ELSE 0 END),
    'control_fj': sum(CASE WHEN part = 'control' THEN energy_fj ELSE 0 END),
    'static_fj': sum(CASE WHEN part = 'static' THEN energy_fj ELSE 0 END),
    'overhead_fj': sum_overhead(common_category, energy_fj)
};

-- Additions of a bias that a convolution or linear layer makes as part of itself: all that it adds beside its MACs.
CREATE MACRO bias_addition_count(kind, elementwise_count) AS
    CASE WHEN kind IN ('conv', 'depthwise_conv', 'grouped_conv', 'linear') THEN elementwise_count ELSE 0 END;

-- Elements of that bias: the output channels, which in the GEMM view of a transposed convolution stand once for each tap.
CREATE MACRO bias_element_count(kind, operation, elementwise_count, gemm_n, gemm_groups, tap_count) AS
    CASE
        WHEN bias_addition_count(kind, elementwise_count) = 0 THEN 0
        WHEN starts_with(operation, 'conv_transpose') THEN gemm_n // tap_count * gemm_groups
        ELSE gemm_n * gemm_groups
    END;

-- MACs of mac_count that a causal mask hides: of S queries over L keys each sees one key less than the next. Scores, which
-- scale each element, have their keys in N; the weighted sum in K.
CREATE MACRO skipped_mac_count(variant, elementwise_count, mac_count, gemm_m, gemm_n, gemm_k) AS
    CASE
        WHEN mac_count > 0 AND list_contains(string_split(variant, ' '), 'causal') THEN
            mac_count // (gemm_m * if(elementwise_count > 0, gemm_n, gemm_k))
            * (
                least(gemm_m, if(elementwise_count > 0, gemm_n, gemm_k))
                * (least(gemm_m, if(elementwise_count > 0, gemm_n, gemm_k)) - 1) // 2
            )
        ELSE 0
    END;

-- What each of these runs is called beside the others, refused ones included: its hardware, in words with the rest of its
-- configuration where they differ in that; and whether they differ in batch, so that one inference is what compares.
CREATE MACRO labels_of(run_ids) AS TABLE
WITH asked AS (
    SELECT DISTINCT unnest(run_ids) AS run_id
)
SELECT
    r.run_id,
    CASE WHEN count(DISTINCT {error_case}) OVER () > 1 THEN {label} ELSE {configured_hardware} END AS label,
    count(DISTINCT r.batch) OVER () > 1 AS is_batch_varying
FROM asked AS a
JOIN internal.run AS r ON r.run_id = a.run_id
JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest;

-- These runs, each with its place among them.
CREATE MACRO places_of(run_ids) AS TABLE
SELECT r.run_id, list_position(run_ids, r.run_id) AS position
FROM internal.run AS r
WHERE r.run_id IN (SELECT unnest(run_ids));

-- What a model was built with, as it stands at the end of a workload's source.
CREATE MACRO model_arguments(source) AS regexp_extract(source, '\((.*)\)$', 1);

-- The kind of a single operator, from its name with sizes; empty for any other model.
CREATE MACRO operator_kind(model) AS regexp_extract(
    model,
    '^(gemm|bmm|conv2d|attention|experts|scan|softmax|layer_norm|rms_norm|embedding|rotary|gated|elementwise|batch_norm'
    || '|max_pool2d|global_avg_pool|all_reduce|all_gather|reduce_scatter|all_to_all|send)\(',
    1
);

-- The family that a model is scored in: that of the catalogue, operator for a single one, else other.
CREATE MACRO scored_family(model, family) AS
    coalesce(family, CASE WHEN operator_kind(model) = '' THEN 'other' ELSE 'operator' END);

-- A model with the arguments and inputs that it was asked for with, as name_model of plan/workload.py writes it.
CREATE MACRO spelled_model(model, arguments, inputs) AS
    model || '(' || array_to_string(
        list_filter([arguments, replace(inputs, ' ', ', ')], lambda one: one NOT IN ('', 'example_inputs')), ', '
    ) || ')';

-- The names that measurements of a workload may have: that of the model where its arguments and inputs are its own,
-- else with them. Of a hub's model nothing stored says which inputs are its own.
CREATE MACRO measured_names(model, source, arguments, inputs, input_shape, own_shape) AS
    CASE
        WHEN starts_with(source, 'torchvision:')
            THEN [CASE WHEN input_shape IN (own_shape, own_shape || ' ' || own_shape) THEN model ELSE spelled_model(model, arguments, inputs) END]
        WHEN regexp_matches(source, '^(file|exported|block):') THEN [
            CASE
                WHEN arguments = '' AND inputs = 'example_inputs' THEN model
                ELSE spelled_model(model, arguments, inputs)
            END
        ]
        WHEN regexp_matches(source, '^(timm|hf):') THEN [model, spelled_model(model, arguments, inputs)]
        ELSE [model]
    END;

-- Every workload by the names that measurements of it may have; several for some.
CREATE MACRO named_workloads() AS TABLE
SELECT
    w.workload_id,
    unnest(measured_names(
        w.model,
        w.source,
        regexp_extract(w.source, ':[^:()]*\((.*)\)( formulas=.*)?$', 1),
        regexp_replace(w.input_spec, ' ?batch=[0-9]+$', ''),
        w.input_shape,
        coalesce(e.input_shape, '')
    )) AS measured_model
FROM internal.workload AS w
LEFT JOIN internal.model_entry AS e ON e.model = w.model;

-- An assumption as a person gave it, or for a negative number that of the catalogue.
CREATE MACRO assumed(name, given) AS
    CASE WHEN given >= 0e0 THEN given ELSE (SELECT a.value FROM internal.cost_assumption AS a WHERE a.assumption = name) END;

-- What is known of a metric by its name; find_metric holds the rows of the table `metric` (store/surface.py).
CREATE MACRO metric_column(metric_name) AS find_metric(metric_name).column_name;
CREATE MACRO metric_unit(metric_name) AS find_metric(metric_name).unit;
CREATE MACRO is_higher_better(metric_name) AS find_metric(metric_name).is_higher_better;
-- Stored half-width of the metric's logarithm, in a row of internal.run_total; 0 for a metric without an error.
CREATE MACRO metric_half_width(metric_name, total) AS
    CASE find_metric(metric_name).half_width_column
        WHEN 'latency_half_width' THEN total.latency_half_width
        WHEN 'energy_half_width' THEN total.energy_half_width
        WHEN 'edp_half_width' THEN total.edp_half_width
        WHEN 'power_half_width' THEN total.power_half_width
        ELSE 0e0
    END;
-- What is not known where the metric is null.
CREATE MACRO metric_missing(metric_name) AS find_metric(metric_name).missing;

-- The value of a metric in a row that has a column for it: one of runs or of cube.cost.
CREATE MACRO metric_value(metric_name, one) AS
    coalesce(
        CAST(to_json(one) ->> metric_column(metric_name) AS DOUBLE),
        CASE
            WHEN (to_json(one) -> metric_column(metric_name)) IS NULL
                THEN error('the metric ' || metric_name || ' is not known of these runs: it needs prices and use')
        END
    );

-- A value as a cost: lower is better. And how many times better a value is than another one: above 1 where it is.
CREATE MACRO as_cost(is_higher_better, value) AS CASE WHEN is_higher_better THEN -value ELSE value END;
CREATE MACRO better_ratio(is_higher_better, value, other) AS
    CASE WHEN is_higher_better THEN value / nullif(other, 0e0) ELSE other / nullif(value, 0e0) END;

-- The host that a chip occupies by itself, by what it needs; null for a card, which shares a host. As SOLE_SLOTS in
-- domain/host.py.
CREATE MACRO sole_host(needs_host) AS
    CASE WHEN starts_with(needs_host, 'USB') OR starts_with(needs_host, 'M.2') THEN 'raspberry_pi_5' END;

-- The limits above 0 that a row of cube.cost does not keep, as a list; an unknown price keeps
-- none. violation_fraction is value / bound - 1, for throughput bound / value - 1.
CREATE MACRO missed_limits(
    one, max_latency_s, max_energy_j, max_energy_per_inference_j, max_memory_bytes, max_power_w,
    min_throughput_per_s, max_price_usd_per_hour, max_purchase_usd
) AS
    list_transform(
        list_filter(
            [
                {'name': 'latency', 'value': one.latency_s, 'bound': 0e0 + max_latency_s},
                {'name': 'energy', 'value': one.total_energy_j, 'bound': 0e0 + max_energy_j},
                {
                    'name': 'energy_per_inference',
                    'value': one.total_energy_per_inference_j,
                    'bound': 0e0 + max_energy_per_inference_j
                },
                {'name': 'memory', 'value': 0e0 + one.peak_memory_bytes, 'bound': 0e0 + max_memory_bytes},
                {'name': 'power', 'value': one.total_power_w, 'bound': 0e0 + max_power_w},
                {'name': 'throughput', 'value': one.throughput_per_s, 'bound': 0e0 + min_throughput_per_s},
                {'name': 'price', 'value': one.price_cloud_usd_per_hour, 'bound': 0e0 + max_price_usd_per_hour},
                {'name': 'purchase', 'value': one.price_purchase_usd, 'bound': 0e0 + max_purchase_usd}
            ],
            lambda l: l.bound > 0e0 AND NOT coalesce(
                as_cost(is_higher_better(l.name), l.value) <= as_cost(is_higher_better(l.name), l.bound), FALSE
            )
        ),
        lambda l, position: {
            'limit_index': position,
            'limit_name': l.name,
            'value': l.value,
            'bound': l.bound,
            'excess': as_cost(is_higher_better(l.name), l.value) - as_cost(is_higher_better(l.name), l.bound),
            'violation_fraction': better_ratio(is_higher_better(l.name), l.bound, l.value) - 1e0,
            'unit': metric_unit(l.name),
            'missing': metric_missing(l.name)
        }
    );

-- What stands for one way of paying, rented or bought; null for neither.
CREATE MACRO by_way(way, rented, bought) AS CASE way WHEN 'rented' THEN rented WHEN 'bought' THEN bought END;

-- What is not known where a metric is null, of a cost in one way of paying.
CREATE MACRO missing_of(metric_name, pay) AS
    coalesce(CASE WHEN metric_name = 'cost' THEN by_way(pay, 'rent', 'purchase price') END, metric_missing(metric_name));

-- Half-width of what a price of a basis leaves open, of its natural logarithm: domain/spread.py. A given one is what is
-- paid.
CREATE MACRO price_spread(basis) AS ln(CASE basis
    WHEN 'given' THEN 1e0
    WHEN 'measured' THEN 1.1e0
    WHEN 'published' THEN 1.2e0
    WHEN 'derived' THEN 1.3e0
    WHEN 'recalled' THEN 1.3e0
    WHEN 'scaled' THEN 1.5e0
    WHEN 'assumed' THEN 2e0
END);

-- A price with who asks it and when, for people.
CREATE MACRO tell_rent(usd, told) AS concat_ws(', ', format('{:.4g} USD/h', usd), nullif(told, ''));
CREATE MACRO tell_purchase(usd, told) AS concat_ws(', ', format('{:,.0f} USD', usd), nullif(told, ''));

-- Half-width of the cost of what is bought, from that of its price: the price and electricity are parts of the cost.
CREATE MACRO bought_spread(half_width, purchase_usd, energy_usd) AS half_width * purchase_usd / (purchase_usd + energy_usd);

-- The way that is paid in where what is asked for is rented, bought or both, the cheaper of two; null without a price.
CREATE MACRO way_paid(pay, rented_usd, bought_usd) AS CASE
    WHEN pay <> 'bought' AND rented_usd IS NOT NULL AND NOT (pay = 'both' AND coalesce(bought_usd < rented_usd, FALSE))
        THEN 'rented'
    WHEN pay <> 'rented' AND bought_usd IS NOT NULL THEN 'bought'
END;

-- Hardware on which a framework's allocator keeps a workspace for each stream that it has used.
CREATE MACRO allocators() AS TABLE
SELECT
    hardware_digest,
    max(value) FILTER (quantity = 'coefficient.allocator_workspace') AS workspace_bytes,
    max(value) FILTER (quantity = 'coefficient.allocator_stream_limit') AS stream_limit
FROM internal.hardware_fact
WHERE quantity IN ('coefficient.allocator_workspace', 'coefficient.allocator_stream_limit')
GROUP BY hardware_digest;

-- What a framework that keeps a workspace for each stream reports; null where the streams are not known.
CREATE MACRO allocated_bytes(run_bytes, workspace_bytes, stream_limit, stream_count) AS
    CASE
        WHEN workspace_bytes IS NULL THEN run_bytes
        WHEN stream_count IS NOT NULL THEN CAST(run_bytes + least(stream_count, stream_limit) * workspace_bytes AS BIGINT)
    END;

-- What a profile and a trace can agree on. A profile lists shapes as they stand in memory, so operators that differ in
-- more than this share a row. It does not tell what a concatenation joins; an attention is one kernel.
-- Signatures of the operators of these workloads, of all for null. What is not asked about is not aggregated.
CREATE MACRO signatures_among(workload_ids) AS TABLE
SELECT
    o.workload_id,
    o.operator_index,
    CASE
        WHEN o.aten LIKE 'aten.scaled_dot_product_attention%' THEN 'scaled_dot_product_attention'
        ELSE o.operation
    END AS operation,
    CASE
        WHEN o.aten LIKE 'aten.scaled_dot_product_attention%' THEN regexp_replace(o.output_shape, 'x[0-9]+$', '')
        WHEN o.operation = 'cat' THEN ''
        WHEN o.operation IN ('reshape', 'contiguous', 'clone') THEN o.copied_shape || ' -> ' || o.output_shape
        ELSE concat(p.shapes, CASE WHEN p.shapes IS NULL THEN '' ELSE ' -> ' END, o.output_shape)
    END AS shapes,
    CASE WHEN o.aten LIKE 'aten.scaled_dot_product_attention%' THEN 'attention' ELSE o.kind END AS kind,
    o.copied_shape
FROM (
    SELECT
        workload_id,
        operator_index,
        operation,
        kind,
        aten,
        output_shape,
        CASE
            WHEN lag(kind) OVER before = 'view' AND lag(output_element_count) OVER before = output_element_count
                THEN lag(output_shape) OVER before
            ELSE output_shape
        END AS copied_shape
    FROM internal.workload_operator
    WHERE workload_ids IS NULL OR list_contains(workload_ids, workload_id)
    WINDOW before AS (PARTITION BY workload_id ORDER BY operator_index ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS o
LEFT JOIN (
    SELECT a.workload_id, a.operator_index, string_agg(t.shape, ' ' ORDER BY a.access_index) AS shapes
    FROM internal.workload_access AS a
    JOIN internal.workload_tensor AS t ON t.workload_id = a.workload_id AND t.tensor_index = a.tensor_index
    WHERE a.role <> 'output' AND (workload_ids IS NULL OR list_contains(workload_ids, a.workload_id))
    GROUP BY a.workload_id, a.operator_index
) AS p ON p.workload_id = o.workload_id AND p.operator_index = o.operator_index;

-- Name of a source of measurements: what stands before its parts, place and notes.
CREATE MACRO source_name(source) AS regexp_replace(source, '(, |: ).*$', '');

-- Order of the quantities that predictions are scored in.
CREATE MACRO quantity_place(quantity) AS list_position(
    ['latency_s', 'throughput_per_s', 'energy_j', 'time_to_first_token_s', 'inter_token_latency_s', 'request_latency_s',
     'output_tokens_per_s', 'total_tokens_per_s', 'energy_per_output_token_j', 'energy_per_request_j', 'power_w',
     'wall_power_w', 'peak_memory_bytes'],
    quantity
);

-- Half-width of what is predicted of a served model: that of the finest group of measurements that it is in. An engine is
-- its name and its release, of which the name alone is a group too.
CREATE MACRO serving_half_width(of_quantity, of_vendor, of_engine, of_work, of_hardware) AS (
    SELECT max_by(s.half_width, s.level)
    FROM internal.serving_scale AS s
    WHERE s.quantity = of_quantity
        AND s.vendor IN ('', of_vendor)
        AND s.engine IN ('', of_engine, split_part(of_engine, ' ', 1))
        AND s.work IN ('', of_work)
        AND s.hardware IN ('', of_hardware)
);

-- That of a run that serves one, with what the hardware's own numbers leave open beyond errors of other hardware.
CREATE MACRO served_half_width(of_quantity, of_vendor, of_engine, of_work, of_hardware, own_half_width) AS
    sqrt(pow(serving_half_width(of_quantity, of_vendor, of_engine, of_work, of_hardware), 2) + pow(own_half_width, 2));

-- What a run is of, as errors of predictions are told apart: a sort of whole model, or a kind of single operator.
CREATE MACRO work_of(model, whole) AS coalesce(nullif(operator_kind(model), ''), whole);

-- Whether a peak is of the size class of a group of measurements. Constants are those of domain/doubt.py.
CREATE MACRO is_of_size(scale, ops_per_s) AS
    ops_per_s BETWEEN scale.least_ops_per_s / {same_size} AND scale.most_ops_per_s * {same_size};
-- Half-width of a latency from that of its group: no less than unmeasured_half_width but for CPUs, GPUs and boards of their own rows.
CREATE MACRO doubted_half_width(architecture, level, half_width) AS
    CASE WHEN level = 6 OR architecture IN {measured_classes} THEN half_width ELSE greatest(half_width, {unmeasured}) END;
-- Half-width of a group: no less than unmeasured_half_width for decompositions, until some are measured.
CREATE MACRO new_half_width(level, half_width, of_work) AS
    CASE WHEN level <= 2 AND of_work = 'decomposition' THEN greatest(half_width, {unmeasured}) ELSE half_width END;
-- The peak of each hardware version, at its fastest precision.
CREATE MACRO peaks_of_hardware() AS TABLE
SELECT hardware_digest, max(peak_ops_per_s) AS ops_per_s FROM internal.hardware_precision GROUP BY hardware_digest;

-- Half-width of an 80 % interval over the mean of absolute errors.
CREATE MACRO mean_to_width() AS ln(5e0);

-- Whose errors an interval is made of: what tells a level of groups from the one above.
CREATE MACRO other_work() AS 'other work of its class';

CREATE MACRO scale_basis(level) AS
    ['measurements of other classes, widened', 'measurements of other classes, widened', other_work(),
     'its class', 'its runtime', 'its precision', 'its own measurements'][level + 1];

-- The runtime whose errors are those of a run: where a class has nothing but its vendor's compiler, fused is the engine.
CREATE MACRO scored_runtime(architecture, runtime) AS
    CASE WHEN runtime = 'fused' AND architecture NOT IN ('cpu', 'gpu') THEN 'engine' ELSE runtime END;

-- Half-width of what each calibration was off on model families that its fit had not seen, by runtime and precision, and
-- the largest of a runtime's for precisions that it has no rows of.
CREATE MACRO left_out_widths() AS TABLE
SELECT
    n.calibration_digest,
    n.hardware,
    n.runtime,
    coalesce(n.precision, '') AS "precision",
    max(n.latency_width) AS latency_width,
    max(n.energy_width) AS energy_width
FROM (
    SELECT
        e.calibration_digest,
        c.hardware,
        e.runtime,
        e.precision,
        mean_to_width() * max_by(e.mean_error_fraction, e.measurement_count) FILTER (e.quantity = 'latency')
            AS latency_width,
        mean_to_width() * max_by(e.mean_error_fraction, e.measurement_count) FILTER (e.quantity = 'energy')
            AS energy_width
    FROM internal.calibration_error AS e
    JOIN internal.calibration AS c ON c.calibration_digest = e.calibration_digest
    WHERE e.split = 'cross_validated' AND e.family IS NULL AND e.runtime IS NOT NULL AND e.precision IS NOT NULL
    GROUP BY e.calibration_digest, c.hardware, e.runtime, e.precision
) AS n
GROUP BY GROUPING SETS (
    (n.calibration_digest, n.hardware, n.runtime, n.precision), (n.calibration_digest, n.hardware, n.runtime)
);

-- The peak that the formulas of a class compute by; null for a class that computes by units and clock alone.
CREATE MACRO peak_of(architecture, "precision") AS CASE
    {peaks}
    ELSE 'peak.' || "precision"
END;

-- The hardware that one is a variant of, as in l4[tdp=60W]; itself where it is none.
CREATE MACRO board_of(hardware) AS split_part(hardware, '[', 1);

-- Whether a number is what a question set in place of the hardware's own.
CREATE MACRO is_set(source) AS ends_with(source, '--set');

-- 1 where errors are those of other hardware, which know nothing of this one's own numbers; 0 where they are its own.
CREATE MACRO is_foreign(left_out, level) AS CAST(left_out IS NULL AND level IS DISTINCT FROM 6 AS INTEGER);

-- What is stored of runs as actions, of those numbered from the first to the last: sums over the operators of the ledger.
CREATE MACRO actions_between(first_run, last_run) AS TABLE
SELECT
    run_id,
    action_id,
    sum(action_count ORDER BY operator_index) AS action_count,
    sum(energy_fj) AS energy_fj
FROM internal.ledger_line
WHERE run_id BETWEEN first_run AND last_run
GROUP BY run_id, action_id
UNION ALL
SELECT run_id, action_id, action_count, CAST(energy_fj AS HUGEINT)
FROM internal.point_action
WHERE run_id BETWEEN first_run AND last_run;

-- Latency of runs by what bounds it, of those numbered in a list: communication for subgraphs that exchange between
-- devices, operands for units whose MACs, padding included, take less than a tenth of their time, else the bottleneck.
CREATE MACRO bounds_of(run_ids) AS TABLE
SELECT
    s.run_id,
    CASE
        WHEN k.is_talking THEN 'communication'
        WHEN
            s.bottleneck = 'compute' AND s.executed_mac_count > 0e0
            AND 2e0 * s.executed_mac_count / r.peak_ops_per_s < 0.1e0 * s.compute_s
            THEN 'operands'
        ELSE s.bottleneck
    END AS bound,
    sum(s.latency_fs) AS latency_fs
FROM internal.run_subgraph AS s
JOIN internal.run AS r ON r.run_id = s.run_id
JOIN (
    SELECT workload_id, subgraph_index, bool_or(kind = 'communication') AS is_talking
    FROM internal.workload_operator
    WHERE workload_id IN (SELECT workload_id FROM internal.run WHERE run_id IN (SELECT unnest(run_ids)) AND has_ledger)
    GROUP BY workload_id, subgraph_index
) AS k ON k.workload_id = r.workload_id AND k.subgraph_index = s.subgraph_index
WHERE s.run_id IN (SELECT unnest(run_ids))
GROUP BY s.run_id, bound
UNION ALL
SELECT p.run_id, b.bound, CAST(b.latency_fs AS HUGEINT)
FROM internal.point_total AS p
CROSS JOIN LATERAL (VALUES
    ('compute', p.compute_bound_fs),
    ('operands', p.operands_bound_fs),
    ('memory', p.memory_bound_fs),
    ('launch', p.launch_bound_fs),
    ('communication', p.communication_bound_fs)
) AS b (bound, latency_fs)
WHERE p.run_id IN (SELECT unnest(run_ids)) AND b.latency_fs > 0;

-- What is stored of runs as totals, of those numbered from the first to the last: sums over their parts, and half-widths
-- of 80 % intervals of the logarithms of their latency and energy with where they come from (docs/doubt.md). Latency: what
-- the run's calibration was off on model families that its fit had not seen, else the finest group of measurements that
-- the run is in. Energy: the same, together with what the bases of its prices leave open, where parts of one basis err
-- together, bases by themselves, and static energy with the time. Where the errors are not of this very hardware, what its
-- own numbers leave open beyond those of scored hardware is added: of latency peak and clock for the part that compute
-- bounds, bandwidth for the part that memory bounds, the clock for the fixed part; of energy prices that its file gives
-- (those without a range of the class, static power among them), and static energy with that time. What a question set is
-- taken as given. At the boundary system, what the forms of a host and of everything else around the board leave open is added, each by its share. Bytes are added as decimals, whose sum does not depend on the order.
CREATE MACRO totals_between(first_run, last_run) AS TABLE
WITH spent AS (
    SELECT
        g.run_id,
        sum(g.energy_fj) AS energy_fj,
        list_sum(list(pow(b.half_width * CAST(g.energy_fj AS DOUBLE), 2) ORDER BY g.basis))
            / nullif(pow(CAST(sum(g.energy_fj) AS DOUBLE), 2), 0e0) AS basis_square,
        list_sum(list(pow(b.own_price_half_width * CAST(g.own_fj AS DOUBLE), 2) ORDER BY g.basis))
            / nullif(pow(CAST(sum(g.energy_fj) AS DOUBLE), 2), 0e0) AS own_square,
        fraction(sum(g.static_fj), sum(g.energy_fj)) AS static_share,
        coalesce(fraction(sum(g.host_fj), sum(g.energy_fj)), 0e0) AS host_share
    FROM (
        SELECT
            l.run_id,
            e.basis,
            sum(l.energy_fj) AS energy_fj,
            sum(CASE WHEN e.low_fj IS NULL AND NOT is_set(e.source) THEN l.energy_fj ELSE 0 END) AS own_fj,
            sum(CASE WHEN a.common_category = 'static' THEN l.energy_fj ELSE 0 END) AS static_fj,
            sum(CASE WHEN a.component = 'host' AND a.action = 'static_power' THEN l.energy_fj ELSE 0 END) AS host_fj
        FROM internal.run_action AS l
        JOIN internal.run AS r ON r.run_id = l.run_id
        LEFT JOIN internal.action AS a ON a.action_id = l.action_id
        LEFT JOIN internal.energy_per_action AS e ON e.action_id = l.action_id AND e.hardware_digest = r.hardware_digest
        WHERE l.run_id BETWEEN first_run AND last_run
        GROUP BY l.run_id, e.basis
    ) AS g
    LEFT JOIN internal.basis_spread AS b ON b.number_basis = g.basis
    GROUP BY g.run_id
),
placed AS (
    SELECT
        run_id,
        sum(latency_fs) AS latency_fs,
        sum(latency_fs - launch_fs) FILTER (compute_s >= memory_s) AS compute_fs,
        sum(latency_fs - launch_fs) FILTER (compute_s < memory_s) AS memory_fs,
        sum(launch_fs) AS launch_fs,
        CAST(sum(CAST(dram_bytes AS DECIMAL(38, 9))) AS DOUBLE) AS dram_bytes,
        CAST(sum(CAST(moved_bytes AS DECIMAL(38, 9))) AS DOUBLE) AS moved_bytes,
        sum(CAST(units_used_count AS HUGEINT) * latency_fs) AS unit_fs,
        sum(computed_mac_count) AS computed_mac_count
    FROM (
        SELECT *, least(CAST(launch_s * 1e15 AS BIGINT), latency_fs) AS launch_fs
        FROM internal.run_subgraph
        WHERE run_id BETWEEN first_run AND last_run
    )
    GROUP BY run_id
    UNION ALL
    SELECT
        run_id,
        latency_fs,
        compute_fs,
        memory_fs,
        launch_fs,
        dram_bytes,
        moved_bytes,
        CAST(unit_high AS HUGEINT) * 67108864 + unit_low,
        computed_mac_count
    FROM internal.point_total
    WHERE run_id BETWEEN first_run AND last_run
),
given AS (
    SELECT
        r.run_id,
        max(b.own_number_half_width) FILTER (f.quantity <> 'memory_bandwidth') AS compute_width,
        max(b.own_number_half_width) FILTER (f.quantity = 'memory_bandwidth') AS memory_width,
        max(b.own_number_half_width) FILTER (f.quantity = 'clock') AS launch_width
    FROM internal.run AS r
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    JOIN internal.hardware_fact AS f
        ON f.hardware_digest = r.hardware_digest
        AND f.quantity IN ('clock', 'memory_bandwidth', coalesce(peak_of(v.architecture, r.precision), 'clock'))
        AND NOT is_set(f.source)
    JOIN internal.basis_spread AS b ON b.number_basis = f.basis
    WHERE r.run_id BETWEEN first_run AND last_run
    GROUP BY r.run_id
),
worked AS (
    SELECT p.run_id, CAST(coalesce(sum(q.mac_count), 0) AS BIGINT) AS mac_count, sum(p.interval_fs) AS interval_fs
    FROM internal.run_operator AS p
    JOIN internal.run AS r ON r.run_id = p.run_id
    LEFT JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = p.operator_index
    WHERE p.run_id BETWEEN first_run AND last_run
    GROUP BY p.run_id
    UNION ALL
    SELECT run_id, mac_count, interval_fs
    FROM internal.point_total
    WHERE run_id BETWEEN first_run AND last_run
),
scored AS (
    SELECT
        r.run_id,
        max_by(
            {
                'half_width': doubted_half_width(
                    v.architecture, s.level, new_half_width(s.level, s.half_width, work_of(w.model, w.work))
                ),
                'group_count': s.group_count,
                'level': s.level
            },
            s.level
        ) FILTER (s.quantity = 'latency') AS latency_scale,
        max_by(
            {
                'half_width': new_half_width(s.level, s.half_width, work_of(w.model, w.work)),
                'group_count': s.group_count,
                'level': s.level
            },
            s.level
        ) FILTER (s.quantity = 'energy') AS energy_scale,
        max_by(e.latency_width, e.precision) AS left_out_latency,
        max_by(e.energy_width, e.precision) AS left_out_energy,
        coalesce(bool_or(b.hardware_digest IS NOT NULL), FALSE) AS has_load,
        coalesce(max(y.value) FILTER (y.quantity = 'coefficient.system_growth_half_width'), 0e0) AS growth_half_width,
        coalesce(max(y.value) FILTER (y.quantity = 'coefficient.system_host_half_width'), 0e0) AS host_half_width
    FROM internal.run AS r
    JOIN internal.workload AS w ON w.workload_id = r.workload_id
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    LEFT JOIN peaks_of_hardware() AS z ON z.hardware_digest = r.hardware_digest
    LEFT JOIN internal.error_scale AS s
        ON s.work IN ('', work_of(w.model, w.work))
        AND s.architecture IN ('', v.architecture)
        AND s.runtime IN ('', scored_runtime(v.architecture, r.runtime))
        AND s.precision IN ('', r.precision)
        AND s.hardware IN ('', board_of(v.hardware))
        AND is_of_size(s, coalesce(z.ops_per_s, s.most_ops_per_s))
    LEFT JOIN left_out_widths() AS e
        ON e.calibration_digest = r.calibration_digest
        AND e.hardware = board_of(v.hardware)
        AND e.runtime = r.runtime
        AND e.precision IN ('', r.precision)
        AND work_of(w.model, w.work) = 'model'
    LEFT JOIN (SELECT DISTINCT hardware_digest FROM internal.hardware_load WHERE covers = 'board') AS b
        ON b.hardware_digest = r.hardware_digest
    LEFT JOIN internal.hardware_fact AS y
        ON y.hardware_digest = r.hardware_digest
        AND y.quantity IN ('coefficient.system_growth_half_width', 'coefficient.system_host_half_width')
    WHERE r.refusal IS NULL AND r.run_id BETWEEN first_run AND last_run
    GROUP BY r.run_id
)
SELECT
    w.run_id,
    w.latency_fs,
    w.interval_fs,
    w.energy_fj,
    w.mac_count,
    w.computed_mac_count,
    w.unit_fs,
    w.dram_bytes,
    w.moved_bytes,
    w.latency_half_width,
    w.energy_half_width,
    sqrt(pow(w.latency_half_width, 2) + pow(w.energy_half_width, 2)
        + 2 * {correlation} * w.latency_half_width * w.energy_half_width) AS edp_half_width,
    sqrt(pow(w.latency_half_width, 2) + pow(w.energy_half_width, 2)
        - 2 * {correlation} * w.latency_half_width * w.energy_half_width) AS power_half_width,
    w.price_half_width,
    w.latency_own_half_width,
    sqrt(w.energy_own_square + w.around_square) AS energy_own_half_width,
    CASE WHEN w.left_out_latency IS NULL THEN scale_basis(w.latency_scale.level) ELSE 'its calibration' END
        AS latency_basis,
    CASE
        WHEN w.left_out_energy IS NOT NULL THEN 'its calibration'
        WHEN w.energy_scale.level < 2 AND w.has_load THEN 'its measured load and the bases of its prices'
        ELSE scale_basis(w.energy_scale.level) || ' and the bases of its prices'
    END AS energy_basis,
    CASE WHEN w.left_out_latency IS NULL THEN w.latency_scale.group_count END AS latency_group_count,
    CASE WHEN w.left_out_energy IS NULL THEN w.energy_scale.group_count END AS energy_group_count
FROM (
    SELECT
        *,
        sqrt(
            CASE
                WHEN left_out_energy IS NOT NULL THEN pow(left_out_energy, 2)
                WHEN energy_scale.level < 2 AND has_load THEN pow(price_half_width, 2)
                WHEN energy_scale.level < 2 THEN pow(energy_scale.half_width, 2) + pow(price_half_width, 2)
                ELSE
                    (energy_scale.group_count * (pow(energy_scale.half_width, 2) + energy_own_square)
                        + {full_groups} * pow(price_half_width, 2)) / (energy_scale.group_count + {full_groups})
            END
            + around_square
        ) AS energy_half_width
    FROM (
        SELECT
            *,
            sqrt(basis_square + pow(static_share * latency_half_width, 2)) AS price_half_width,
            pow(growth_half_width * (1e0 - host_share), 2) + pow(host_half_width * host_share, 2) AS around_square,
            is_foreign(left_out_energy, energy_scale.level)
                * (own_square + pow(static_share * latency_own_half_width, 2)) AS energy_own_square
        FROM (
            SELECT
                *,
                sqrt(pow(coalesce(left_out_latency, latency_scale.half_width), 2) + pow(latency_own_half_width, 2))
                    AS latency_half_width
            FROM (
                SELECT
                    c.*,
                    t.* EXCLUDE (run_id),
                    o.* EXCLUDE (run_id),
                    e.* EXCLUDE (run_id),
                    sqrt(
                        is_foreign(c.left_out_latency, c.latency_scale.level)
                        * (
                            pow(coalesce(t.compute_fs * g.compute_width, 0e0), 2)
                            + pow(coalesce(t.memory_fs * g.memory_width, 0e0), 2)
                            + pow(coalesce(t.launch_fs * g.launch_width, 0e0), 2)
                        )
                    ) / nullif(CAST(t.latency_fs AS DOUBLE), 0e0) AS latency_own_half_width
                FROM scored AS c
                JOIN placed AS t ON t.run_id = c.run_id
                JOIN worked AS o ON o.run_id = c.run_id
                JOIN spent AS e ON e.run_id = c.run_id
                LEFT JOIN given AS g ON g.run_id = c.run_id
            )
        )
    )
) AS w;
