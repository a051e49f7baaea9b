-- Tables: stored facts. What can be derived is a view. Energy is integer femtojoules and latency integer femtoseconds,
-- because sums of integers do not depend on their order; the only stored energy is ledger_line.energy_fj.
-- They stand in the schema `internal`, so that `SHOW TABLES` lists the promised views and nothing else.

CREATE TABLE internal.hardware_version (
    hardware_digest VARCHAR PRIMARY KEY,
    hardware VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    vendor VARCHAR NOT NULL,
    architecture VARCHAR NOT NULL,
    deployment VARCHAR[] NOT NULL,
    microarchitecture VARCHAR NOT NULL,
    unit_name VARCHAR NOT NULL,
    memory_type VARCHAR NOT NULL,
    projection VARCHAR NOT NULL,
    unavailable VARCHAR NOT NULL,
    package_version VARCHAR NOT NULL,
    power_mode VARCHAR NOT NULL,
    aliases VARCHAR[] NOT NULL,
    doubts VARCHAR[] NOT NULL,
    priced_at VARCHAR NOT NULL CHECK (priced_at IN ('chip', 'board')),
    boundary VARCHAR NOT NULL CHECK (boundary IN ('chip', 'board', 'system')),
    described_digest VARCHAR NOT NULL,
    needs_host VARCHAR NOT NULL DEFAULT '',
    host VARCHAR NOT NULL DEFAULT '',
    tf32 VARCHAR NOT NULL DEFAULT '' CHECK (tf32 IN ('', 'allowed')),
    helper_digest VARCHAR NOT NULL DEFAULT '',
    changes VARCHAR[] NOT NULL DEFAULT [],
    content_digest VARCHAR NOT NULL DEFAULT ''
);
COMMENT ON TABLE internal.hardware_version IS 'A hardware target as one catalogue described it; never changed, a new description is a new digest';
COMMENT ON COLUMN internal.hardware_version.hardware_digest IS 'Of every byte that the description was made from: data file and class file';
COMMENT ON COLUMN internal.hardware_version.hardware IS 'Catalogue id, e.g. h100_sxm5';
COMMENT ON COLUMN internal.hardware_version.name IS 'Name for people';
COMMENT ON COLUMN internal.hardware_version.vendor IS 'Who makes it';
COMMENT ON COLUMN internal.hardware_version.architecture IS 'Architecture class: cpu, gpu, tpu, kpu, dsp, dpu, cgra or npu';
COMMENT ON COLUMN internal.hardware_version.deployment IS 'Where it is used: datacenter, edge, embedded';
COMMENT ON COLUMN internal.hardware_version.microarchitecture IS 'The vendor''s name of the design';
COMMENT ON COLUMN internal.hardware_version.unit_name IS 'What one unit is called: core, SM, MXU, tile';
COMMENT ON COLUMN internal.hardware_version.memory_type IS 'Off-chip memory';
COMMENT ON COLUMN internal.hardware_version.projection IS 'Why the key numbers are projections; empty for a chip that exists';
COMMENT ON COLUMN internal.hardware_version.unavailable IS 'Why it can be neither bought nor rented, or only at a price that is a guess; empty where it can';
COMMENT ON COLUMN internal.hardware_version.package_version IS 'joulemap version that wrote the row';
COMMENT ON COLUMN internal.hardware_version.power_mode IS 'Operating point that the numbers are of';
COMMENT ON COLUMN internal.hardware_version.aliases IS 'Other names that it is asked for by';
COMMENT ON COLUMN internal.hardware_version.doubts IS 'What the sources disagree about';
COMMENT ON COLUMN internal.hardware_version.priced_at IS 'Where what its energies per action were fitted to was measured: board, or chip for those of circuits';
COMMENT ON COLUMN internal.hardware_version.boundary IS 'What the energy of its runs contains: board, chip without what the board takes, or system with host, chassis and power supply: what the wall plug reads';
COMMENT ON COLUMN internal.hardware_version.described_digest IS 'hardware_version that it is at this boundary, or with these changes; empty where it is none';
COMMENT ON COLUMN internal.hardware_version.needs_host IS 'The slot or port of a computer that it needs, whose power is not in its own; empty for what works by itself';
COMMENT ON COLUMN internal.hardware_version.host IS 'The hardware that it sits in, where one was named: its pace launches kernels, and energies contain it where needs_host is not empty';
COMMENT ON COLUMN internal.hardware_version.tf32 IS 'allowed where libraries may compute fp32 products of its runs in TF32; empty elsewhere';
COMMENT ON COLUMN internal.hardware_version.helper_digest IS 'hardware_version that computes what its compiler does not run; empty for none';
COMMENT ON COLUMN internal.hardware_version.changes IS 'What a question set in place of its own numbers, which are facts and energies with the source --set; empty where it is as described';
COMMENT ON COLUMN internal.hardware_version.content_digest IS 'Of this row and those of its facts, precisions, levels, links, power modes and energies, eight digits each; `joulemap db check` compares them';

CREATE TABLE internal.hardware_fact (
    hardware_digest VARCHAR NOT NULL,
    fact_index INTEGER NOT NULL CHECK (fact_index >= 0),
    quantity VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    unit VARCHAR NOT NULL,
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_fact IS 'Every number of a hardware version except its energy reference table';
COMMENT ON COLUMN internal.hardware_fact.hardware_digest IS 'hardware_version that the number belongs to';
COMMENT ON COLUMN internal.hardware_fact.fact_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_fact.quantity IS 'Dotted name, e.g. memory.l2.capacity';
COMMENT ON COLUMN internal.hardware_fact.value IS 'In unit';
COMMENT ON COLUMN internal.hardware_fact.unit IS 'SI unit; 1 for a count or ratio';
COMMENT ON COLUMN internal.hardware_fact.basis IS 'Where the number comes from: measured, published, derived, scaled, recalled, assumed';
COMMENT ON COLUMN internal.hardware_fact.source IS 'Document, measurement or arithmetic';
COMMENT ON COLUMN internal.hardware_fact.note IS 'What a reader must know to use it well';

CREATE TABLE internal.hardware_precision (
    hardware_digest VARCHAR NOT NULL,
    precision_index INTEGER NOT NULL CHECK (precision_index >= 0),
    precision VARCHAR NOT NULL,
    peak_ops_per_s DOUBLE NOT NULL CHECK (peak_ops_per_s > 0),
    units_count INTEGER NOT NULL CHECK (units_count > 0),
    clock_hz DOUBLE NOT NULL CHECK (clock_hz > 0),
    operations_per_clock DOUBLE,
    engine VARCHAR NOT NULL,
    explanation VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_precision IS 'Precisions that a hardware version runs';
COMMENT ON COLUMN internal.hardware_precision.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_precision.precision_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_precision.precision IS 'fp32, bf16, int8 ...';
COMMENT ON COLUMN internal.hardware_precision.peak_ops_per_s IS 'Dense peak; one MAC is two operations';
COMMENT ON COLUMN internal.hardware_precision.units_count IS 'Units that have this precision';
COMMENT ON COLUMN internal.hardware_precision.clock_hz IS 'Clock that the peak is quoted at';
COMMENT ON COLUMN internal.hardware_precision.operations_per_clock IS 'Of one unit';
COMMENT ON COLUMN internal.hardware_precision.engine IS 'Component that gives the peak where a unit has several, e.g. tensor_core; empty if unknown';
COMMENT ON COLUMN internal.hardware_precision.explanation IS 'Why units x operations per clock x clock is not the peak, where it is not';

CREATE TABLE internal.action (
    action_id USMALLINT PRIMARY KEY,
    architecture VARCHAR NOT NULL,
    category VARCHAR NOT NULL,
    common_category VARCHAR NOT NULL CHECK (
        common_category IN (
            'compute', 'register', 'unit_memory', 'chip_memory', 'interconnect', 'off_chip_memory', 'communication',
            'control', 'board', 'host', 'static'
        )
    ),
    component VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    part VARCHAR NOT NULL CHECK (part IN ('compute', 'memory', 'control', 'static')),
    per VARCHAR NOT NULL,
    UNIQUE (architecture, category, common_category, component, action, part, per)
);
COMMENT ON TABLE internal.action IS 'Vocabulary of the ledger: what can happen on an architecture';
COMMENT ON COLUMN internal.action.action_id IS 'Number used in ledger_line';
COMMENT ON COLUMN internal.action.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.action.category IS 'The architecture''s own grouping';
COMMENT ON COLUMN internal.action.common_category IS 'Grouping that all architectures share: unit_memory belongs to one unit, chip_memory to all of them';
COMMENT ON COLUMN internal.action.component IS 'What acts; equal (component, action) on two architectures is the same physical act';
COMMENT ON COLUMN internal.action.action IS 'What it does';
COMMENT ON COLUMN internal.action.part IS 'compute, memory, control or static';
COMMENT ON COLUMN internal.action.per IS 'What one count is: MAC, B, instruction, s';

CREATE TABLE internal.action_role (
    architecture VARCHAR NOT NULL,
    component VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    amount DOUBLE NOT NULL CHECK (amount >= 0),
    way VARCHAR NOT NULL,
    step VARCHAR NOT NULL,
    PRIMARY KEY (architecture, component, action)
);
COMMENT ON TABLE internal.action_role IS 'What each action is for, in roles that all classes of hardware share; replaced when the catalogue changes';
COMMENT ON COLUMN internal.action_role.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.action_role.component IS 'Of the action';
COMMENT ON COLUMN internal.action_role.action IS 'What the component does';
COMMENT ON COLUMN internal.action_role.role IS 'What it is for: mac, operand, memory_read, instruction ...';
COMMENT ON COLUMN internal.action_role.amount IS 'How much of the role''s unit one count is; 0 of what comes with an act that is counted';
COMMENT ON COLUMN internal.action_role.step IS 'Name of one count of an action that tells a unit what to do, such as an instruction or a token; empty for all others';
COMMENT ON COLUMN internal.action_role.way IS 'How the class does what the role is for; empty where it does as all do';

CREATE TABLE internal.event (
    event_index USMALLINT PRIMARY KEY,
    architecture VARCHAR NOT NULL,
    component VARCHAR NOT NULL,
    event VARCHAR NOT NULL,
    per VARCHAR NOT NULL,
    part_of VARCHAR NOT NULL,
    meaning VARCHAR NOT NULL,
    formula VARCHAR NOT NULL,
    divisor VARCHAR NOT NULL,
    is_priced BOOLEAN NOT NULL,
    UNIQUE (architecture, component, event)
);
COMMENT ON TABLE internal.event IS 'What a class of hardware does in the words of those who ask; replaced when the catalogue changes';
COMMENT ON COLUMN internal.event.event_index IS 'Order in the files of the classes';
COMMENT ON COLUMN internal.event.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.event.component IS 'Where it happens';
COMMENT ON COLUMN internal.event.event IS 'What happens';
COMMENT ON COLUMN internal.event.per IS 'What one is: instruction, line, warp, token ...';
COMMENT ON COLUMN internal.event.part_of IS 'Event of the same component that it is a share of; empty for none';
COMMENT ON COLUMN internal.event.meaning IS 'In words';
COMMENT ON COLUMN internal.event.formula IS 'How its count follows from actions of the ledger';
COMMENT ON COLUMN internal.event.divisor IS 'Quantity of the hardware that the sum is divided by; empty for none';
COMMENT ON COLUMN internal.event.is_priced IS 'Whether actions pay for it';

CREATE TABLE internal.event_term (
    event_index USMALLINT NOT NULL,
    architecture VARCHAR NOT NULL,
    component VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    factor DOUBLE NOT NULL,
    floor DOUBLE NOT NULL,
    is_cost BOOLEAN NOT NULL
);
COMMENT ON TABLE internal.event_term IS 'Actions that events are counted and paid by';
COMMENT ON COLUMN internal.event_term.event_index IS 'event';
COMMENT ON COLUMN internal.event_term.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.event_term.component IS 'Of the action';
COMMENT ON COLUMN internal.event_term.action IS 'What the component does';
COMMENT ON COLUMN internal.event_term.factor IS 'What one action adds to the count, before the divisor';
COMMENT ON COLUMN internal.event_term.floor IS 'What one action adds to the least that the count is, before the divisor';
COMMENT ON COLUMN internal.event_term.is_cost IS 'Whether its energy is the event''s';

CREATE TABLE internal.energy_per_action (
    hardware_digest VARCHAR NOT NULL,
    action_id USMALLINT NOT NULL,
    energy_per_action_fj DOUBLE NOT NULL CHECK (energy_per_action_fj >= 0),
    low_fj DOUBLE,
    high_fj DOUBLE,
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    count_formula VARCHAR NOT NULL,
    action_index INTEGER NOT NULL CHECK (action_index >= 0)
);
COMMENT ON TABLE internal.energy_per_action IS 'Energy reference table of each hardware version, at its process node and the highest voltage of its die';
COMMENT ON COLUMN internal.energy_per_action.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.energy_per_action.action_id IS 'action';
COMMENT ON COLUMN internal.energy_per_action.energy_per_action_fj IS 'Femtojoules of one count';
COMMENT ON COLUMN internal.energy_per_action.low_fj IS 'Lower end of the plausible range; null where none is known';
COMMENT ON COLUMN internal.energy_per_action.high_fj IS 'Upper end of the plausible range';
COMMENT ON COLUMN internal.energy_per_action.basis IS 'Where the number comes from';
COMMENT ON COLUMN internal.energy_per_action.source IS 'Document, measurement or arithmetic';
COMMENT ON COLUMN internal.energy_per_action.count_formula IS 'How the count follows from an operator, in words';
COMMENT ON COLUMN internal.energy_per_action.action_index IS 'Order in the description';

CREATE TABLE internal.catalogue_entry (
    catalogue_digest VARCHAR NOT NULL,
    hardware_index INTEGER NOT NULL CHECK (hardware_index >= 0),
    hardware VARCHAR NOT NULL,
    hardware_digest VARCHAR NOT NULL,
    usual_digest VARCHAR NOT NULL
);
COMMENT ON TABLE internal.catalogue_entry IS 'Which hardware version each id means now; replaced when the catalogue changes';
COMMENT ON COLUMN internal.catalogue_entry.catalogue_digest IS 'Of all data files of the catalogue';
COMMENT ON COLUMN internal.catalogue_entry.hardware_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.catalogue_entry.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.catalogue_entry.hardware_digest IS 'hardware_version as it is described';
COMMENT ON COLUMN internal.catalogue_entry.usual_digest IS 'hardware_version that its runs use where nothing else is asked, which need not be stored yet: at its default mode and its board, under the calibration that ships';

CREATE TABLE internal.model_entry (
    model VARCHAR PRIMARY KEY,
    family VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    input_shape VARCHAR NOT NULL,
    input_layout VARCHAR NOT NULL CHECK (input_layout IN ('tensors', 'images', 'pair')),
    parameter_count BIGINT,
    traced_parameter_count BIGINT,
    mac_count BIGINT,
    published_mac_count BIGINT,
    is_traceable BOOLEAN NOT NULL,
    reason VARCHAR NOT NULL,
    aliases VARCHAR NOT NULL
);
COMMENT ON TABLE internal.model_entry IS 'Models that can be asked for by name';
COMMENT ON COLUMN internal.model_entry.model IS 'Name';
COMMENT ON COLUMN internal.model_entry.family IS 'Family of architectures, e.g. resnet';
COMMENT ON COLUMN internal.model_entry.task IS 'classification, segmentation, video ...';
COMMENT ON COLUMN internal.model_entry.input_shape IS 'Of one sample, without the batch';
COMMENT ON COLUMN internal.model_entry.input_layout IS 'How inputs are handed over: tensors, a list of images, a pair of tensors';
COMMENT ON COLUMN internal.model_entry.parameter_count IS 'As published with the default weights';
COMMENT ON COLUMN internal.model_entry.traced_parameter_count IS 'Elements of all parameters, as the package traced it';
COMMENT ON COLUMN internal.model_entry.mac_count IS 'Multiply-accumulates at batch 1, as the package traced it';
COMMENT ON COLUMN internal.model_entry.published_mac_count IS 'As published with the default weights, batch 1';
COMMENT ON COLUMN internal.model_entry.is_traceable IS 'Whether joulemap traces it';
COMMENT ON COLUMN internal.model_entry.reason IS 'Why not, if not';
COMMENT ON COLUMN internal.model_entry.aliases IS 'Other names, and models of equal sizes; separated by spaces';

CREATE TABLE internal.workload (
    workload_id INTEGER PRIMARY KEY,
    workload_key VARCHAR NOT NULL UNIQUE,
    model VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    input_spec VARCHAR NOT NULL,
    input_shape VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    inner_batch BIGINT NOT NULL CHECK (inner_batch > 0),
    parameter_count BIGINT NOT NULL CHECK (parameter_count >= 0),
    weight_bytes BIGINT NOT NULL CHECK (weight_bytes >= 0),
    work VARCHAR NOT NULL CHECK (work IN ('model', 'decode', 'experts', 'training', 'decomposition')),
    torch_version VARCHAR NOT NULL,
    torchvision_version VARCHAR NOT NULL,
    tracer_version VARCHAR NOT NULL,
    notes VARCHAR[] NOT NULL,
    created_at TIMESTAMP NOT NULL,
    content_digest VARCHAR NOT NULL DEFAULT '',
    dimensions MAP(VARCHAR, VARCHAR) NOT NULL DEFAULT MAP {}
);
COMMENT ON TABLE internal.workload IS 'A traced model at one input shape';
COMMENT ON COLUMN internal.workload.workload_id IS 'Number used in the tables of its parts';
COMMENT ON COLUMN internal.workload.workload_key IS 'Digest of all that a trace depends on';
COMMENT ON COLUMN internal.workload.model IS 'The name that it was asked for by';
COMMENT ON COLUMN internal.workload.source IS 'torchvision:NAME, block:NAME, file:DIGEST:PATH:FACTORY, exported:DIGEST:PATH, timm:NAME or hf:NAME, with the arguments that it was built with in brackets';
COMMENT ON COLUMN internal.workload.input_spec IS 'Input shapes and dtypes';
COMMENT ON COLUMN internal.workload.input_shape IS 'Of one sample of each input, without the batch, e.g. 3x224x224';
COMMENT ON COLUMN internal.workload.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.workload.inner_batch IS 'Samples in each of those: the batch that a single operator states of itself, else 1';
COMMENT ON COLUMN internal.workload.parameter_count IS 'Elements of all parameters, shared ones once';
COMMENT ON COLUMN internal.workload.weight_bytes IS 'Of parameters and buffers that the forward pass reads, at the traced dtype';
COMMENT ON COLUMN internal.workload.work IS 'Sort of work, by which errors of predictions are told apart: decode, a few tokens behind a cache; experts, tokens that choose among weights; training, what changes weights; decomposition, mostly steps of factorizations and solvers; model, all else';
COMMENT ON COLUMN internal.workload.torch_version IS 'torch that traced it';
COMMENT ON COLUMN internal.workload.torchvision_version IS 'torchvision that built it';
COMMENT ON COLUMN internal.workload.tracer_version IS 'Digest of the rules by which it was traced and fused';
COMMENT ON COLUMN internal.workload.notes IS 'What the trace had to assume';
COMMENT ON COLUMN internal.workload.dimensions IS 'Value of each dimension that a wing declares, such as the phase of a pass; none where it is the default';
COMMENT ON COLUMN internal.workload.created_at IS 'When it was stored, UTC';
COMMENT ON COLUMN internal.workload.content_digest IS 'Of this row and those of its operators, tensors, accesses, edges, buffers and subgraphs, eight digits each; `joulemap db check` compares them';

CREATE TABLE internal.workload_subgraph (
    workload_id INTEGER NOT NULL,
    subgraph_index INTEGER NOT NULL CHECK (subgraph_index >= 0),
    name VARCHAR NOT NULL,
    pattern VARCHAR NOT NULL,
    step_count BIGINT NOT NULL CHECK (step_count >= 1)
);
COMMENT ON TABLE internal.workload_subgraph IS 'Operators fused together; independent of hardware';
COMMENT ON COLUMN internal.workload_subgraph.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_subgraph.subgraph_index IS 'Order of first operators';
COMMENT ON COLUMN internal.workload_subgraph.name IS 'Of the operator that leads it';
COMMENT ON COLUMN internal.workload_subgraph.pattern IS 'Operations in order, e.g. conv2d+batch_norm+relu';
COMMENT ON COLUMN internal.workload_subgraph.step_count IS 'Steps of a recurrence, a decomposition or a loop that wait for one another inside its one kernel; 1 for all else';

CREATE TABLE internal.workload_operator (
    workload_id INTEGER NOT NULL,
    operator_index INTEGER NOT NULL CHECK (operator_index >= 0),
    subgraph_index INTEGER NOT NULL CHECK (subgraph_index >= 0),
    name VARCHAR NOT NULL,
    module_path VARCHAR NOT NULL,
    operation VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    aten VARCHAR NOT NULL,
    output_shape VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    mac_count BIGINT NOT NULL CHECK (mac_count >= 0),
    elementwise_count BIGINT NOT NULL CHECK (elementwise_count >= 0),
    special_count BIGINT NOT NULL CHECK (special_count >= 0),
    output_element_count BIGINT NOT NULL CHECK (output_element_count >= 0),
    gemm_m BIGINT NOT NULL CHECK (gemm_m >= 0),
    gemm_n BIGINT NOT NULL CHECK (gemm_n >= 0),
    gemm_k BIGINT NOT NULL CHECK (gemm_k >= 0),
    gemm_groups BIGINT NOT NULL CHECK (gemm_groups >= 0),
    tap_count BIGINT NOT NULL CHECK (tap_count >= 1),
    is_foldable BOOLEAN NOT NULL,
    scalars VARCHAR NOT NULL,
    variant VARCHAR NOT NULL,
    step_count BIGINT NOT NULL CHECK (step_count >= 1),
    run_count BIGINT NOT NULL CHECK (run_count >= 1)
);
COMMENT ON TABLE internal.workload_operator IS 'ATen-level operators in execution order; counts are for the whole batch';
COMMENT ON COLUMN internal.workload_operator.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_operator.operator_index IS 'Execution order';
COMMENT ON COLUMN internal.workload_operator.subgraph_index IS 'The one subgraph that holds it';
COMMENT ON COLUMN internal.workload_operator.name IS 'Unique: module path, with the operation where the module holds several';
COMMENT ON COLUMN internal.workload_operator.module_path IS 'e.g. layer4.0.conv2';
COMMENT ON COLUMN internal.workload_operator.operation IS 'conv2d, relu, add ...';
COMMENT ON COLUMN internal.workload_operator.kind IS 'What it is to a mapping model; uncounted where no formula is known';
COMMENT ON COLUMN internal.workload_operator.aten IS 'Dispatched ATen operator';
COMMENT ON COLUMN internal.workload_operator.output_shape IS 'e.g. 1x64x56x56';
COMMENT ON COLUMN internal.workload_operator.dtype IS 'Of the output, as traced';
COMMENT ON COLUMN internal.workload_operator.mac_count IS 'Multiply-accumulates';
COMMENT ON COLUMN internal.workload_operator.elementwise_count IS 'Additions, multiplications, comparisons';
COMMENT ON COLUMN internal.workload_operator.special_count IS 'exp, tanh, erf, rsqrt ...';
COMMENT ON COLUMN internal.workload_operator.output_element_count IS 'Elements of the first output';
COMMENT ON COLUMN internal.workload_operator.gemm_m IS 'Rows of the GEMM view; 0 where there are no MACs';
COMMENT ON COLUMN internal.workload_operator.gemm_n IS 'Columns of the GEMM view';
COMMENT ON COLUMN internal.workload_operator.gemm_k IS 'Inner dimension of the GEMM view';
COMMENT ON COLUMN internal.workload_operator.gemm_groups IS 'Independent GEMMs; matrices of a decomposition';
COMMENT ON COLUMN internal.workload_operator.tap_count IS 'Taps of a convolution or pooling window';
COMMENT ON COLUMN internal.workload_operator.is_foldable IS 'Depends on no model input';
COMMENT ON COLUMN internal.workload_operator.scalars IS 'Scalar arguments that matter';
COMMENT ON COLUMN internal.workload_operator.variant IS 'Of an attention: causal, the family of kernels that runs it, or both; dequantize of what makes weights wide for the product that reads them; decomposition of factorizations and solvers; empty for any other';
COMMENT ON COLUMN internal.workload_operator.step_count IS 'Steps of a recurrence or decomposition that wait for one another inside the one call; 1 for all else';
COMMENT ON COLUMN internal.workload_operator.run_count IS 'Sequential runs per inference, of a repeated stage of a pipeline; counts cover all runs; 1 for all else';

CREATE TABLE internal.workload_tensor (
    workload_id INTEGER NOT NULL,
    tensor_index INTEGER NOT NULL CHECK (tensor_index >= 0),
    shape VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    byte_count BIGINT NOT NULL CHECK (byte_count >= 0),
    role VARCHAR NOT NULL CHECK (role IN ('activation', 'parameter', 'input', 'constant')),
    name VARCHAR NOT NULL,
    producer_index INTEGER,
    buffer_index INTEGER,
    is_output BOOLEAN NOT NULL
);
COMMENT ON TABLE internal.workload_tensor IS 'Values between operators, parameters and inputs';
COMMENT ON COLUMN internal.workload_tensor.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_tensor.tensor_index IS 'Order of appearance';
COMMENT ON COLUMN internal.workload_tensor.shape IS 'e.g. 64x3x7x7';
COMMENT ON COLUMN internal.workload_tensor.dtype IS 'As traced';
COMMENT ON COLUMN internal.workload_tensor.byte_count IS 'Of the storage that it owns; 0 for a view';
COMMENT ON COLUMN internal.workload_tensor.role IS 'activation, parameter, input or constant';
COMMENT ON COLUMN internal.workload_tensor.name IS 'Of a parameter or buffer';
COMMENT ON COLUMN internal.workload_tensor.producer_index IS 'Operator that made it';
COMMENT ON COLUMN internal.workload_tensor.buffer_index IS 'Activation storage that holds it';
COMMENT ON COLUMN internal.workload_tensor.is_output IS 'Returned by the model';

CREATE TABLE internal.workload_access (
    workload_id INTEGER NOT NULL,
    access_index INTEGER NOT NULL CHECK (access_index >= 0),
    operator_index INTEGER NOT NULL,
    tensor_index INTEGER NOT NULL,
    role VARCHAR NOT NULL CHECK (role IN ('input', 'weight', 'output')),
    byte_count BIGINT NOT NULL CHECK (byte_count >= 0),
    fused_byte_count BIGINT NOT NULL CHECK (fused_byte_count >= 0 AND fused_byte_count <= byte_count),
    item_bytes UTINYINT NOT NULL,
    is_boundary BOOLEAN NOT NULL
);
COMMENT ON TABLE internal.workload_access IS 'Traffic of one operator on one tensor';
COMMENT ON COLUMN internal.workload_access.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_access.access_index IS 'Execution order; an operator may read several parts of one tensor';
COMMENT ON COLUMN internal.workload_access.operator_index IS 'Who reads or writes';
COMMENT ON COLUMN internal.workload_access.tensor_index IS 'What';
COMMENT ON COLUMN internal.workload_access.role IS 'input, weight or output';
COMMENT ON COLUMN internal.workload_access.byte_count IS 'When the operator is a kernel of its own, at the traced dtype';
COMMENT ON COLUMN internal.workload_access.fused_byte_count IS 'When its subgraph is one kernel';
COMMENT ON COLUMN internal.workload_access.item_bytes IS 'Of one element if floating point of 16 bits or more, else 0';
COMMENT ON COLUMN internal.workload_access.is_boundary IS 'Enters or leaves the model';

CREATE TABLE internal.workload_edge (
    workload_id INTEGER NOT NULL,
    edge_index INTEGER NOT NULL CHECK (edge_index >= 0),
    producer_index INTEGER NOT NULL,
    consumer_index INTEGER NOT NULL,
    tensor_index INTEGER NOT NULL,
    CHECK (producer_index < consumer_index)
);
COMMENT ON TABLE internal.workload_edge IS 'Data dependences between operators';
COMMENT ON COLUMN internal.workload_edge.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_edge.edge_index IS 'Execution order; an operator may read one result twice';
COMMENT ON COLUMN internal.workload_edge.producer_index IS 'Operator that writes';
COMMENT ON COLUMN internal.workload_edge.consumer_index IS 'Operator that reads';
COMMENT ON COLUMN internal.workload_edge.tensor_index IS 'What flows';

CREATE TABLE internal.workload_buffer (
    workload_id INTEGER NOT NULL,
    buffer_index INTEGER NOT NULL CHECK (buffer_index >= 0),
    birth_index INTEGER NOT NULL,
    death_index INTEGER NOT NULL,
    byte_count BIGINT NOT NULL CHECK (byte_count >= 0),
    item_bytes UTINYINT NOT NULL,
    is_hidden BOOLEAN NOT NULL,
    release_index INTEGER NOT NULL,
    CHECK (birth_index <= death_index)
);
COMMENT ON TABLE internal.workload_buffer IS 'Activation storage with its lifetime';
COMMENT ON COLUMN internal.workload_buffer.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_buffer.buffer_index IS 'Number used in workload_tensor';
COMMENT ON COLUMN internal.workload_buffer.birth_index IS 'Operator that allocates it';
COMMENT ON COLUMN internal.workload_buffer.death_index IS 'Last operator that reads it';
COMMENT ON COLUMN internal.workload_buffer.byte_count IS 'At the traced dtype';
COMMENT ON COLUMN internal.workload_buffer.item_bytes IS 'Of one element if floating point of 16 bits or more, else 0';
COMMENT ON COLUMN internal.workload_buffer.is_hidden IS 'Never leaves its subgraph, so a fused kernel does not allocate it';
COMMENT ON COLUMN internal.workload_buffer.release_index IS 'Last operator during which a program that runs operator by operator holds it';

CREATE TABLE internal.run (
    run_id INTEGER PRIMARY KEY,
    run_key VARCHAR NOT NULL UNIQUE,
    workload_id INTEGER NOT NULL,
    hardware_digest VARCHAR NOT NULL,
    power_mode VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    weight_precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL CHECK (runtime IN ('eager', 'graph', 'fused', 'engine')),
    calibration VARCHAR NOT NULL,
    refusal VARCHAR,
    units_total_count INTEGER CHECK (units_total_count > 0),
    peak_ops_per_s DOUBLE CHECK (peak_ops_per_s > 0),
    memory_bandwidth_bytes_per_s DOUBLE CHECK (memory_bandwidth_bytes_per_s > 0),
    weight_bytes BIGINT CHECK (weight_bytes >= 0),
    activation_bytes BIGINT CHECK (activation_bytes >= 0),
    clock_fraction DOUBLE CHECK (clock_fraction > 0 AND clock_fraction <= 1),
    clock_hz DOUBLE CHECK (clock_hz > 0),
    voltage_factor DOUBLE CHECK (voltage_factor > 0),
    uncapped_power_w DOUBLE CHECK (uncapped_power_w > 0),
    throughput_limit VARCHAR CHECK (
        throughput_limit IN ('latency', 'cores', 'devices', 'pipeline stage', 'memory bandwidth', 'power cap')
    ),
    separate_clock_fraction DOUBLE CHECK (separate_clock_fraction > 0 AND separate_clock_fraction <= 1),
    placement VARCHAR NOT NULL DEFAULT '',
    has_ledger BOOLEAN NOT NULL,
    formula_version VARCHAR NOT NULL,
    package_version VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL,
    calibration_digest VARCHAR NOT NULL,
    is_newest BOOLEAN NOT NULL DEFAULT FALSE,
    content_digest VARCHAR NOT NULL DEFAULT '',
    CHECK (refusal IS NOT NULL OR peak_ops_per_s IS NOT NULL)
);
COMMENT ON TABLE internal.run IS 'One workload on one configuration: evaluated, or refused with the reason';
COMMENT ON COLUMN internal.run.run_id IS 'Number used in the tables of its parts';
COMMENT ON COLUMN internal.run.run_key IS 'Digest of all that the answer depends on; the same question is stored once';
COMMENT ON COLUMN internal.run.workload_id IS 'workload';
COMMENT ON COLUMN internal.run.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.run.power_mode IS 'Operating point';
COMMENT ON COLUMN internal.run.precision IS 'Of activations and products';
COMMENT ON COLUMN internal.run.weight_precision IS 'That weights of products are stored at, as int4 or int4:64 (groups of 64); precision where no other was asked for';
COMMENT ON COLUMN internal.run.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.run.runtime IS 'How the software stack launches work';
COMMENT ON COLUMN internal.run.calibration IS 'Calibration used, by name and first digits of its digest; none for the class defaults';
COMMENT ON COLUMN internal.run.refusal IS 'Why the hardware cannot run it; null for an evaluated run';
COMMENT ON COLUMN internal.run.units_total_count IS 'Units that have this precision';
COMMENT ON COLUMN internal.run.peak_ops_per_s IS 'Dense peak at this precision';
COMMENT ON COLUMN internal.run.memory_bandwidth_bytes_per_s IS 'Of the off-chip memory, as published';
COMMENT ON COLUMN internal.run.weight_bytes IS 'Parameters and buffers read, as they are stored';
COMMENT ON COLUMN internal.run.activation_bytes IS 'Peak of live activations over the execution order';
COMMENT ON COLUMN internal.run.clock_fraction IS 'Of the full clock; below 1 where the power cap gives way';
COMMENT ON COLUMN internal.run.clock_hz IS 'Clock that the power cap leaves, in steady state';
COMMENT ON COLUMN internal.run.voltage_factor IS 'What an action on the chip costs at that clock, relative to the highest voltage of the die: the voltage squared';
COMMENT ON COLUMN internal.run.uncapped_power_w IS 'What it would draw at the full clock of its power mode';
COMMENT ON COLUMN internal.run.placement IS 'Of a box: how the model is placed and the devices with a part, as split cpu+npu; empty for a chip';
COMMENT ON COLUMN internal.run.throughput_limit IS 'What limits batches in a time: latency where one starts after another has ended, power cap where it lowers the clock';
COMMENT ON COLUMN internal.run.separate_clock_fraction IS 'The same where every ATen call is a kernel of its own; null without a ledger';
COMMENT ON COLUMN internal.run.has_ledger IS 'Whether its subgraphs, operators and ledger are stored; false of a refused run and of one evaluated to totals only, whose sums point_total and point_action hold';
COMMENT ON COLUMN internal.run.formula_version IS 'Digest of the formulas of its class';
COMMENT ON COLUMN internal.run.package_version IS 'joulemap version that evaluated it';
COMMENT ON COLUMN internal.run.created_at IS 'When it was stored, UTC';
COMMENT ON COLUMN internal.run.calibration_digest IS 'calibration; empty for none';
COMMENT ON COLUMN internal.run.is_newest IS 'Whether it is one of newest_runs; kept, because to find out takes all runs';
COMMENT ON COLUMN internal.run.content_digest IS 'Of this row and those of its subgraphs, operators, ledger and sums, eight digits each; `joulemap db check` compares them';

CREATE TABLE internal.run_subgraph (
    run_id INTEGER NOT NULL,
    subgraph_index INTEGER NOT NULL,
    latency_fs BIGINT NOT NULL CHECK (latency_fs >= 0),
    compute_s DOUBLE NOT NULL CHECK (compute_s >= 0),
    memory_s DOUBLE NOT NULL CHECK (memory_s >= 0),
    launch_s DOUBLE NOT NULL CHECK (launch_s >= 0),
    pass_s DOUBLE NOT NULL DEFAULT 0 CHECK (pass_s >= 0),
    dram_bytes DOUBLE NOT NULL CHECK (dram_bytes >= 0),
    moved_bytes DOUBLE NOT NULL CHECK (moved_bytes >= 0),
    tile_count DOUBLE NOT NULL CHECK (tile_count >= 0),
    wave_count DOUBLE NOT NULL CHECK (wave_count >= 0),
    units_used_count INTEGER NOT NULL CHECK (units_used_count >= 0),
    kernel_count INTEGER NOT NULL CHECK (kernel_count >= 0),
    bottleneck VARCHAR NOT NULL CHECK (bottleneck IN ('compute', 'memory', 'launch')),
    executed_mac_count DOUBLE NOT NULL CHECK (executed_mac_count >= 0),
    pass_bytes DOUBLE NOT NULL CHECK (pass_bytes >= 0),
    computed_mac_count BIGINT NOT NULL CHECK (computed_mac_count >= 0)
);
COMMENT ON TABLE internal.run_subgraph IS 'Allocation: a subgraph placed on the hardware of a run';
COMMENT ON COLUMN internal.run_subgraph.run_id IS 'run';
COMMENT ON COLUMN internal.run_subgraph.subgraph_index IS 'workload_subgraph of the run''s workload';
COMMENT ON COLUMN internal.run_subgraph.latency_fs IS 'Femtoseconds; subgraphs sum to the run';
COMMENT ON COLUMN internal.run_subgraph.compute_s IS 'Time of the units, padded tiles and partial waves included';
COMMENT ON COLUMN internal.run_subgraph.memory_s IS 'Time of the slowest memory level';
COMMENT ON COLUMN internal.run_subgraph.launch_s IS 'Fixed cost of its kernels';
COMMENT ON COLUMN internal.run_subgraph.pass_s IS 'Memory time of passes that the runtime adds; it belongs to the memory time, but is not overlapped';
COMMENT ON COLUMN internal.run_subgraph.dram_bytes IS 'Read and written off chip';
COMMENT ON COLUMN internal.run_subgraph.moved_bytes IS 'Crossing kernel boundaries at any level';
COMMENT ON COLUMN internal.run_subgraph.tile_count IS 'Tiles of work';
COMMENT ON COLUMN internal.run_subgraph.wave_count IS 'Rounds of tiles over the units';
COMMENT ON COLUMN internal.run_subgraph.units_used_count IS 'Units with work in the fullest wave';
COMMENT ON COLUMN internal.run_subgraph.kernel_count IS 'Kernels launched: one in fused, one per operator otherwise; none where an engine computes it in that of another';
COMMENT ON COLUMN internal.run_subgraph.bottleneck IS 'The largest of compute, memory (passes included) and launch time';
COMMENT ON COLUMN internal.run_subgraph.executed_mac_count IS 'MAC slots of its tiles, padding included, at least its MACs';
COMMENT ON COLUMN internal.run_subgraph.computed_mac_count IS 'MACs that the chip computes: fewer than the operators have where an algorithm saves some or a mask leaves some out';
COMMENT ON COLUMN internal.run_subgraph.pass_bytes IS 'Read and written again by passes that the runtime adds, at any level';

CREATE TABLE internal.run_operator (
    run_id INTEGER NOT NULL,
    subgraph_index INTEGER NOT NULL,
    operator_index INTEGER NOT NULL,
    latency_fs BIGINT NOT NULL CHECK (latency_fs >= 0),
    moved_bytes DOUBLE NOT NULL CHECK (moved_bytes >= 0),
    separate_latency_fs BIGINT NOT NULL CHECK (separate_latency_fs >= 0),
    separate_energy_fj BIGINT NOT NULL CHECK (separate_energy_fj >= 0),
    kernel_count INTEGER NOT NULL CHECK (kernel_count IN (0, 1)),
    dram_bytes DOUBLE NOT NULL CHECK (dram_bytes >= 0),
    pass_bytes DOUBLE NOT NULL CHECK (pass_bytes >= 0),
    separate_kernel_count INTEGER NOT NULL CHECK (separate_kernel_count IN (0, 1)),
    separate_dram_bytes DOUBLE NOT NULL CHECK (separate_dram_bytes >= 0),
    separate_moved_bytes DOUBLE NOT NULL CHECK (separate_moved_bytes >= 0),
    separate_pass_bytes DOUBLE NOT NULL CHECK (separate_pass_bytes >= 0),
    interval_fs BIGINT NOT NULL CHECK (interval_fs >= 0)
);
COMMENT ON TABLE internal.run_operator IS 'An operator''s exact share of its subgraph, and what it would cost alone';
COMMENT ON COLUMN internal.run_operator.run_id IS 'run';
COMMENT ON COLUMN internal.run_operator.subgraph_index IS 'The subgraph that holds it';
COMMENT ON COLUMN internal.run_operator.operator_index IS 'workload_operator of the run''s workload';
COMMENT ON COLUMN internal.run_operator.latency_fs IS 'Femtoseconds; operators sum to their subgraph';
COMMENT ON COLUMN internal.run_operator.moved_bytes IS 'Its part of what crosses the kernel''s boundary';
COMMENT ON COLUMN internal.run_operator.separate_latency_fs IS 'As a kernel of its own';
COMMENT ON COLUMN internal.run_operator.separate_energy_fj IS 'As a kernel of its own, static energy included';
COMMENT ON COLUMN internal.run_operator.kernel_count IS '1 where it leads a kernel, else 0';
COMMENT ON COLUMN internal.run_operator.dram_bytes IS 'Read and written off chip; operators sum to their subgraph';
COMMENT ON COLUMN internal.run_operator.pass_bytes IS 'Read and written again by passes that the runtime adds, at any level';
COMMENT ON COLUMN internal.run_operator.separate_kernel_count IS '1 where it leads a kernel of one call, else 0';
COMMENT ON COLUMN internal.run_operator.separate_dram_bytes IS 'As a kernel of its own';
COMMENT ON COLUMN internal.run_operator.separate_moved_bytes IS 'As a kernel of its own';
COMMENT ON COLUMN internal.run_operator.separate_pass_bytes IS 'As a kernel of its own';
COMMENT ON COLUMN internal.run_operator.interval_fs IS 'Femtoseconds of the time from one batch to the next, which operators sum to: static power is drawn for it';

CREATE TABLE internal.ledger_line (
    run_id INTEGER NOT NULL,
    subgraph_index INTEGER NOT NULL,
    operator_index INTEGER NOT NULL,
    action_id USMALLINT NOT NULL,
    action_count DOUBLE NOT NULL CHECK (action_count >= 0),
    energy_fj BIGINT NOT NULL CHECK (energy_fj >= 0)
);
COMMENT ON TABLE internal.ledger_line IS 'The ledger: the only stored energy. Every energy total is a sum of these lines';
COMMENT ON COLUMN internal.ledger_line.run_id IS 'run';
COMMENT ON COLUMN internal.ledger_line.subgraph_index IS 'Where: subgraph';
COMMENT ON COLUMN internal.ledger_line.operator_index IS 'Where: operator';
COMMENT ON COLUMN internal.ledger_line.action_id IS 'What: action';
COMMENT ON COLUMN internal.ledger_line.action_count IS 'How often';
COMMENT ON COLUMN internal.ledger_line.energy_fj IS 'round(action_count x energy_per_action_fj x voltage factor): that of the run for what happens on the chip, else 1';

CREATE TABLE internal.point_total (
    run_id INTEGER NOT NULL,
    latency_fs BIGINT NOT NULL CHECK (latency_fs >= 0),
    interval_fs BIGINT NOT NULL CHECK (interval_fs >= 0),
    compute_fs BIGINT NOT NULL CHECK (compute_fs >= 0),
    memory_fs BIGINT NOT NULL CHECK (memory_fs >= 0),
    launch_fs BIGINT NOT NULL CHECK (launch_fs >= 0),
    compute_bound_fs BIGINT NOT NULL CHECK (compute_bound_fs >= 0),
    operands_bound_fs BIGINT NOT NULL CHECK (operands_bound_fs >= 0),
    memory_bound_fs BIGINT NOT NULL CHECK (memory_bound_fs >= 0),
    launch_bound_fs BIGINT NOT NULL CHECK (launch_bound_fs >= 0),
    communication_bound_fs BIGINT NOT NULL CHECK (communication_bound_fs >= 0),
    unit_high BIGINT NOT NULL CHECK (unit_high >= 0),
    unit_low BIGINT NOT NULL CHECK (unit_low >= 0),
    mac_count BIGINT NOT NULL CHECK (mac_count >= 0),
    computed_mac_count BIGINT NOT NULL CHECK (computed_mac_count >= 0),
    dram_bytes DOUBLE NOT NULL CHECK (dram_bytes >= 0),
    moved_bytes DOUBLE NOT NULL CHECK (moved_bytes >= 0)
);
COMMENT ON TABLE internal.point_total IS 'Sums over the parts of a run that is stored without its ledger: what an evaluation of these parts adds up to';
COMMENT ON COLUMN internal.point_total.run_id IS 'run';
COMMENT ON COLUMN internal.point_total.latency_fs IS 'Femtoseconds, over subgraphs';
COMMENT ON COLUMN internal.point_total.interval_fs IS 'Femtoseconds from one batch to the next, over operators';
COMMENT ON COLUMN internal.point_total.compute_fs IS 'Latency, launches left out, of subgraphs that compute bounds';
COMMENT ON COLUMN internal.point_total.memory_fs IS 'Latency, launches left out, of subgraphs that memory bounds';
COMMENT ON COLUMN internal.point_total.launch_fs IS 'Latency of launches';
COMMENT ON COLUMN internal.point_total.compute_bound_fs IS 'Latency of subgraphs that the units bound';
COMMENT ON COLUMN internal.point_total.operands_bound_fs IS 'Latency of subgraphs that units whose MACs take less than a tenth of their time bound';
COMMENT ON COLUMN internal.point_total.memory_bound_fs IS 'Latency of subgraphs that the slowest memory level bounds';
COMMENT ON COLUMN internal.point_total.launch_bound_fs IS 'Latency of subgraphs that launches bound';
COMMENT ON COLUMN internal.point_total.communication_bound_fs IS 'Latency of subgraphs that exchanges between devices bound';
COMMENT ON COLUMN internal.point_total.unit_high IS 'Units used x latency, over subgraphs: multiples of 2^26 fs';
COMMENT ON COLUMN internal.point_total.unit_low IS 'The rest of it, in femtoseconds';
COMMENT ON COLUMN internal.point_total.mac_count IS 'Over operators';
COMMENT ON COLUMN internal.point_total.computed_mac_count IS 'Over subgraphs';
COMMENT ON COLUMN internal.point_total.dram_bytes IS 'Over subgraphs';
COMMENT ON COLUMN internal.point_total.moved_bytes IS 'Over subgraphs';

CREATE TABLE internal.point_action (
    run_id INTEGER NOT NULL,
    action_id USMALLINT NOT NULL,
    action_count DOUBLE NOT NULL CHECK (action_count >= 0),
    energy_fj BIGINT NOT NULL CHECK (energy_fj >= 0)
);
COMMENT ON TABLE internal.point_action IS 'Energy by action of a run that is stored without its ledger: what its ledger adds up to';
COMMENT ON COLUMN internal.point_action.run_id IS 'run';
COMMENT ON COLUMN internal.point_action.action_id IS 'action';
COMMENT ON COLUMN internal.point_action.action_count IS 'How often';
COMMENT ON COLUMN internal.point_action.energy_fj IS 'Over operators, exact';

CREATE TABLE internal.run_action (
    run_id INTEGER NOT NULL,
    action_id USMALLINT NOT NULL,
    action_count DOUBLE NOT NULL CHECK (action_count >= 0),
    energy_fj HUGEINT NOT NULL CHECK (energy_fj >= 0)
);
COMMENT ON TABLE internal.run_action IS 'The ledger of a run, operators added up: stored in the transaction that writes the run, audited against the ledger, never a second source';
COMMENT ON COLUMN internal.run_action.run_id IS 'run';
COMMENT ON COLUMN internal.run_action.action_id IS 'action';
COMMENT ON COLUMN internal.run_action.action_count IS 'How often, added in the order of operators';
COMMENT ON COLUMN internal.run_action.energy_fj IS 'Over operators, exact';

CREATE TABLE internal.run_total (
    run_id INTEGER PRIMARY KEY,
    latency_fs HUGEINT NOT NULL CHECK (latency_fs >= 0),
    interval_fs HUGEINT NOT NULL CHECK (interval_fs >= 0),
    energy_fj HUGEINT NOT NULL CHECK (energy_fj >= 0),
    mac_count BIGINT NOT NULL CHECK (mac_count >= 0),
    computed_mac_count HUGEINT NOT NULL CHECK (computed_mac_count >= 0),
    unit_fs HUGEINT NOT NULL CHECK (unit_fs >= 0),
    dram_bytes DOUBLE NOT NULL CHECK (dram_bytes >= 0),
    moved_bytes DOUBLE NOT NULL CHECK (moved_bytes >= 0),
    latency_half_width DOUBLE CHECK (latency_half_width > 0),
    energy_half_width DOUBLE CHECK (energy_half_width > 0),
    edp_half_width DOUBLE CHECK (edp_half_width > 0),
    power_half_width DOUBLE CHECK (power_half_width > 0),
    price_half_width DOUBLE CHECK (price_half_width > 0),
    latency_own_half_width DOUBLE CHECK (latency_own_half_width >= 0),
    energy_own_half_width DOUBLE CHECK (energy_own_half_width >= 0),
    latency_basis VARCHAR,
    energy_basis VARCHAR,
    latency_group_count INTEGER,
    energy_group_count INTEGER
);
COMMENT ON TABLE internal.run_total IS 'Sums over the parts of an evaluated run, and how far they may be off: stored in the transaction that writes the run, audited against its parts, never a second source';
COMMENT ON COLUMN internal.run_total.run_id IS 'run';
COMMENT ON COLUMN internal.run_total.latency_fs IS 'Femtoseconds, over subgraphs';
COMMENT ON COLUMN internal.run_total.interval_fs IS 'Femtoseconds from one batch to the next, over operators';
COMMENT ON COLUMN internal.run_total.energy_fj IS 'Over ledger lines';
COMMENT ON COLUMN internal.run_total.mac_count IS 'Over operators';
COMMENT ON COLUMN internal.run_total.computed_mac_count IS 'Over subgraphs';
COMMENT ON COLUMN internal.run_total.unit_fs IS 'Units used x latency, over subgraphs';
COMMENT ON COLUMN internal.run_total.dram_bytes IS 'Over subgraphs';
COMMENT ON COLUMN internal.run_total.moved_bytes IS 'Over subgraphs';
COMMENT ON COLUMN internal.run_total.latency_half_width IS 'Of an 80 % interval of the logarithm of measured over predicted; null where no table of errors is stored';
COMMENT ON COLUMN internal.run_total.energy_half_width IS 'The same of energy';
COMMENT ON COLUMN internal.run_total.edp_half_width IS 'The same of energy x latency, in which the error of the latency counts twice';
COMMENT ON COLUMN internal.run_total.power_half_width IS 'The same of energy / latency';
COMMENT ON COLUMN internal.run_total.price_half_width IS 'What the bases of its prices leave open of the power';
COMMENT ON COLUMN internal.run_total.latency_own_half_width IS 'The part of latency_half_width that the hardware''s own numbers leave open, which errors of other hardware do not know; 0 where they are no less sure than those of hardware that was scored';
COMMENT ON COLUMN internal.run_total.energy_own_half_width IS 'The same of energy';
COMMENT ON COLUMN internal.run_total.latency_basis IS 'Whose errors the interval of the latency is made of';
COMMENT ON COLUMN internal.run_total.energy_basis IS 'The same of energy';
COMMENT ON COLUMN internal.run_total.latency_group_count IS 'Groups of measurements behind it; null for a calibration''s own';
COMMENT ON COLUMN internal.run_total.energy_group_count IS 'The same of energy';

CREATE TABLE internal.measurement (
    measurement_id INTEGER PRIMARY KEY,
    hardware VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL CHECK (runtime IN ('eager', 'graph', 'fused', 'engine')),
    scope VARCHAR NOT NULL,
    boundary VARCHAR NOT NULL CHECK (boundary IN ('', 'chip', 'board', 'system')),
    idle_power_w DOUBLE CHECK (idle_power_w > 0),
    latency_s DOUBLE CHECK (latency_s > 0),
    throughput_per_s DOUBLE CHECK (throughput_per_s > 0),
    energy_j DOUBLE CHECK (energy_j > 0),
    power_w DOUBLE CHECK (power_w > 0),
    wall_power_w DOUBLE CHECK (wall_power_w > 0),
    device_count INTEGER CHECK (device_count > 0),
    peak_memory_bytes BIGINT CHECK (peak_memory_bytes > 0),
    source VARCHAR NOT NULL CHECK (source <> ''),
    conditions VARCHAR NOT NULL,
    seen VARCHAR NOT NULL,
    stream_count INTEGER,
    content_digest VARCHAR NOT NULL DEFAULT ''
);
COMMENT ON TABLE internal.measurement IS 'What somebody measured, to score predictions against';
COMMENT ON COLUMN internal.measurement.measurement_id IS 'Number of the row';
COMMENT ON COLUMN internal.measurement.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.measurement.model IS 'Model name';
COMMENT ON COLUMN internal.measurement.precision IS 'As measured';
COMMENT ON COLUMN internal.measurement.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.measurement.runtime IS 'eager, graph or fused';
COMMENT ON COLUMN internal.measurement.scope IS 'What the measurement covers, e.g. whole board';
COMMENT ON COLUMN internal.measurement.boundary IS 'What energy_j and power_w contain: chip or board; empty without them';
COMMENT ON COLUMN internal.measurement.idle_power_w IS 'Idle power that was subtracted from energy_j; null for an energy that contains it';
COMMENT ON COLUMN internal.measurement.latency_s IS 'Per batch';
COMMENT ON COLUMN internal.measurement.throughput_per_s IS 'Inferences per second of one device, one batch after another without a pause';
COMMENT ON COLUMN internal.measurement.energy_j IS 'Per batch';
COMMENT ON COLUMN internal.measurement.power_w IS 'Average';
COMMENT ON COLUMN internal.measurement.wall_power_w IS 'Average at the wall plug of the whole system, over its devices: a board draws less';
COMMENT ON COLUMN internal.measurement.device_count IS 'Devices of the system at the wall plug; null where not known';
COMMENT ON COLUMN internal.measurement.peak_memory_bytes IS 'As the framework reports it';
COMMENT ON COLUMN internal.measurement.source IS 'Where the row comes from';
COMMENT ON COLUMN internal.measurement.conditions IS 'Versions, clocks, cooling: what the number depends on';
COMMENT ON COLUMN internal.measurement.seen IS 'Which coefficients were chosen with this row in view; empty where none was';
COMMENT ON COLUMN internal.measurement.stream_count IS 'Streams of the measuring process that had run a product by then; null where not known';
COMMENT ON COLUMN internal.measurement.content_digest IS 'Of this row, eight digits; `joulemap db check` compares them';

CREATE TABLE internal.serving_measurement (
    serving_measurement_id INTEGER PRIMARY KEY,
    source VARCHAR NOT NULL CHECK (source <> ''),
    hardware VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    scope VARCHAR NOT NULL CHECK (scope IN ('prefill_step', 'decode_step', 'request', 'offline', 'steady_serving')),
    engine VARCHAR NOT NULL,
    engine_version VARCHAR NOT NULL,
    date VARCHAR NOT NULL,
    commit VARCHAR NOT NULL,
    device_count INTEGER CHECK (device_count > 0),
    tensor_parallel INTEGER CHECK (tensor_parallel > 0),
    pipeline_parallel INTEGER CHECK (pipeline_parallel > 0),
    expert_parallel INTEGER CHECK (expert_parallel > 0),
    data_parallel INTEGER CHECK (data_parallel > 0),
    weight_precision VARCHAR NOT NULL,
    activation_precision VARCHAR NOT NULL,
    cache_precision VARCHAR NOT NULL,
    prompt_tokens DOUBLE CHECK (prompt_tokens >= 0),
    output_tokens DOUBLE CHECK (output_tokens >= 0),
    batch DOUBLE NOT NULL CHECK (batch > 0),
    time_to_first_token_s DOUBLE CHECK (time_to_first_token_s > 0),
    inter_token_latency_s DOUBLE CHECK (inter_token_latency_s > 0),
    request_latency_s DOUBLE CHECK (request_latency_s > 0),
    output_tokens_per_s DOUBLE CHECK (output_tokens_per_s > 0),
    total_tokens_per_s DOUBLE CHECK (total_tokens_per_s > 0),
    energy_per_output_token_j DOUBLE CHECK (energy_per_output_token_j > 0),
    energy_per_request_j DOUBLE CHECK (energy_per_request_j > 0),
    power_w DOUBLE CHECK (power_w > 0),
    power_boundary VARCHAR NOT NULL,
    idle_power_w DOUBLE CHECK (idle_power_w > 0),
    speculative VARCHAR NOT NULL,
    cached_tokens DOUBLE CHECK (cached_tokens >= 0),
    uses_cache BOOLEAN NOT NULL,
    context_tokens DOUBLE CHECK (context_tokens > 0),
    file_bytes DOUBLE CHECK (file_bytes > 0),
    statistic VARCHAR NOT NULL CHECK (statistic IN ('mean', 'median')),
    prompt_kind VARCHAR NOT NULL,
    notes VARCHAR NOT NULL,
    seen VARCHAR NOT NULL,
    content_digest VARCHAR NOT NULL DEFAULT ''
);
COMMENT ON TABLE internal.serving_measurement IS 'What somebody measured of a language model that is served, to score predictions against';
COMMENT ON COLUMN internal.serving_measurement.serving_measurement_id IS 'Number of the row';
COMMENT ON COLUMN internal.serving_measurement.source IS 'Where the row comes from';
COMMENT ON COLUMN internal.serving_measurement.hardware IS 'Catalogue id, or the name of hardware that the catalogue does not have';
COMMENT ON COLUMN internal.serving_measurement.model IS 'As its source names it';
COMMENT ON COLUMN internal.serving_measurement.scope IS 'prefill_step (a pass over prompts), decode_step (one token of each sequence), request (a call of equal sequences), offline (a whole batch, first prompt token to last output token) or steady_serving (requests always in flight)';
COMMENT ON COLUMN internal.serving_measurement.engine IS 'What serves; empty where not told';
COMMENT ON COLUMN internal.serving_measurement.engine_version IS 'As told; empty where not told';
COMMENT ON COLUMN internal.serving_measurement.date IS 'Of the measurement: software of one engine differs from month to month';
COMMENT ON COLUMN internal.serving_measurement.commit IS 'Repository and commit of the source';
COMMENT ON COLUMN internal.serving_measurement.device_count IS 'Devices in use; null where not told';
COMMENT ON COLUMN internal.serving_measurement.tensor_parallel IS 'Devices that share each layer; null where not told';
COMMENT ON COLUMN internal.serving_measurement.pipeline_parallel IS 'Groups of layers one after another; null where not told';
COMMENT ON COLUMN internal.serving_measurement.expert_parallel IS 'Devices that share the experts; null where not told';
COMMENT ON COLUMN internal.serving_measurement.data_parallel IS 'Copies that share the requests; null where not told';
COMMENT ON COLUMN internal.serving_measurement.weight_precision IS 'As told';
COMMENT ON COLUMN internal.serving_measurement.activation_precision IS 'As told; empty where that of the weights or not told';
COMMENT ON COLUMN internal.serving_measurement.cache_precision IS 'As told; empty where that of the activations or not told';
COMMENT ON COLUMN internal.serving_measurement.prompt_tokens IS 'Of a sequence; what lies in its cache before a decode_step; null where not told';
COMMENT ON COLUMN internal.serving_measurement.output_tokens IS 'Of a sequence; null where not told';
COMMENT ON COLUMN internal.serving_measurement.batch IS 'Sequences of a call, or the mean of requests in flight';
COMMENT ON COLUMN internal.serving_measurement.time_to_first_token_s IS 'Of the whole batch';
COMMENT ON COLUMN internal.serving_measurement.inter_token_latency_s IS 'One step of the whole batch';
COMMENT ON COLUMN internal.serving_measurement.request_latency_s IS 'From first prompt token to last output token';
COMMENT ON COLUMN internal.serving_measurement.output_tokens_per_s IS 'Of all devices';
COMMENT ON COLUMN internal.serving_measurement.total_tokens_per_s IS 'Prompt and output, of all devices';
COMMENT ON COLUMN internal.serving_measurement.energy_per_output_token_j IS 'Of all devices within power_boundary';
COMMENT ON COLUMN internal.serving_measurement.energy_per_request_j IS 'Of all devices within power_boundary';
COMMENT ON COLUMN internal.serving_measurement.power_w IS 'Average, of all devices within power_boundary';
COMMENT ON COLUMN internal.serving_measurement.power_boundary IS 'What joules and watts contain: device, board, module, wall';
COMMENT ON COLUMN internal.serving_measurement.idle_power_w IS 'Idle power of all devices that was subtracted from the energies; null for energies that contain it';
COMMENT ON COLUMN internal.serving_measurement.speculative IS 'How tokens are guessed ahead; empty or none where they are not';
COMMENT ON COLUMN internal.serving_measurement.cached_tokens IS 'Of a sequence, in the cache before a pass over its prompt; null for none or not told';
COMMENT ON COLUMN internal.serving_measurement.uses_cache IS 'Whether keys and values are kept from step to step';
COMMENT ON COLUMN internal.serving_measurement.context_tokens IS 'Of a sequence, that passes were compiled for; null where not told';
COMMENT ON COLUMN internal.serving_measurement.file_bytes IS 'Of the weights as they are stored; null where not told';
COMMENT ON COLUMN internal.serving_measurement.statistic IS 'Of times between tokens: mean or median';
COMMENT ON COLUMN internal.serving_measurement.prompt_kind IS 'What is told of a prompt whose length is not: short, or empty';
COMMENT ON COLUMN internal.serving_measurement.notes IS 'What else the numbers depend on';
COMMENT ON COLUMN internal.serving_measurement.seen IS 'Which coefficients were chosen with this row in view; empty where none was';
COMMENT ON COLUMN internal.serving_measurement.content_digest IS 'Of this row, eight digits; `joulemap db check` compares them';

CREATE TABLE internal.serving_prediction (
    serving_measurement_id INTEGER PRIMARY KEY,
    prediction_key VARCHAR NOT NULL,
    architecture VARCHAR NOT NULL,
    vendor VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    work VARCHAR NOT NULL,
    calibration VARCHAR NOT NULL,
    refusal VARCHAR CHECK (refusal <> ''),
    time_to_first_token_s DOUBLE CHECK (time_to_first_token_s > 0),
    inter_token_latency_s DOUBLE CHECK (inter_token_latency_s > 0),
    request_latency_s DOUBLE CHECK (request_latency_s > 0),
    output_tokens_per_s DOUBLE CHECK (output_tokens_per_s > 0),
    total_tokens_per_s DOUBLE CHECK (total_tokens_per_s > 0),
    energy_per_output_token_j DOUBLE CHECK (energy_per_output_token_j > 0),
    energy_per_request_j DOUBLE CHECK (energy_per_request_j > 0),
    power_w DOUBLE CHECK (power_w > 0),
    formula_version VARCHAR NOT NULL,
    package_version VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL,
    content_digest VARCHAR NOT NULL DEFAULT ''
);
COMMENT ON TABLE internal.serving_prediction IS 'What is predicted of a served configuration that somebody measured, or why nothing is: the newest of each measurement';
COMMENT ON COLUMN internal.serving_prediction.serving_measurement_id IS 'serving_measurement';
COMMENT ON COLUMN internal.serving_prediction.prediction_key IS 'Digest of all that it depends on';
COMMENT ON COLUMN internal.serving_prediction.architecture IS 'Architecture class; empty where the hardware is not known';
COMMENT ON COLUMN internal.serving_prediction.vendor IS 'Of the hardware; empty where it is not known';
COMMENT ON COLUMN internal.serving_prediction.engine IS 'That is taken, with its release; empty where none is';
COMMENT ON COLUMN internal.serving_prediction.work IS 'model, or experts where tokens choose among weights; empty where the model is not known';
COMMENT ON COLUMN internal.serving_prediction.calibration IS 'Calibration used, by name and first digits of its digest; none for the class defaults';
COMMENT ON COLUMN internal.serving_prediction.refusal IS 'Why there is no prediction; null where there is one';
COMMENT ON COLUMN internal.serving_prediction.time_to_first_token_s IS 'Of the whole batch';
COMMENT ON COLUMN internal.serving_prediction.inter_token_latency_s IS 'One step of the whole batch';
COMMENT ON COLUMN internal.serving_prediction.request_latency_s IS 'From first prompt token to last output token';
COMMENT ON COLUMN internal.serving_prediction.output_tokens_per_s IS 'Of all devices';
COMMENT ON COLUMN internal.serving_prediction.total_tokens_per_s IS 'Prompt and output, of all devices';
COMMENT ON COLUMN internal.serving_prediction.energy_per_output_token_j IS 'Of all devices within power_boundary';
COMMENT ON COLUMN internal.serving_prediction.energy_per_request_j IS 'Of all devices within power_boundary';
COMMENT ON COLUMN internal.serving_prediction.power_w IS 'Average, of all devices within power_boundary';
COMMENT ON COLUMN internal.serving_prediction.formula_version IS 'Of the code of the class and of serving';
COMMENT ON COLUMN internal.serving_prediction.package_version IS 'joulemap';
COMMENT ON COLUMN internal.serving_prediction.created_at IS 'UTC';
COMMENT ON COLUMN internal.serving_prediction.content_digest IS 'Of this row, eight digits; `joulemap db check` compares them';

CREATE TABLE internal.estimate (
    estimate_id INTEGER PRIMARY KEY,
    estimate_key VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    hardware VARCHAR NOT NULL,
    hardware_digest VARCHAR NOT NULL,
    power_mode VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL CHECK (runtime IN ('eager', 'graph', 'fused', 'engine')),
    calibration VARCHAR NOT NULL,
    calibration_digest VARCHAR NOT NULL,
    refusal VARCHAR,
    latency_fs BIGINT CHECK (latency_fs >= 0),
    interval_fs BIGINT CHECK (interval_fs >= 0),
    energy_fj BIGINT CHECK (energy_fj >= 0),
    clock_fraction DOUBLE CHECK (clock_fraction > 0 AND clock_fraction <= 1),
    weight_bytes BIGINT CHECK (weight_bytes >= 0),
    activation_bytes BIGINT CHECK (activation_bytes >= 0),
    mac_count BIGINT CHECK (mac_count >= 0),
    formula_version VARCHAR NOT NULL,
    package_version VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL,
    content_digest VARCHAR NOT NULL DEFAULT '',
    CHECK (refusal IS NOT NULL OR (latency_fs IS NOT NULL AND interval_fs IS NOT NULL AND energy_fj IS NOT NULL))
);
COMMENT ON TABLE internal.estimate IS 'What a single operator takes in all on one configuration: evaluated in bulk, without a ledger; the newest of each configuration under each calibration';
COMMENT ON COLUMN internal.estimate.estimate_id IS 'Number of the row';
COMMENT ON COLUMN internal.estimate.estimate_key IS 'Digest of all that it depends on';
COMMENT ON COLUMN internal.estimate.model IS 'The operator with its sizes, e.g. gemm(m=128,n=4096,k=4096)';
COMMENT ON COLUMN internal.estimate.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.estimate.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.estimate.power_mode IS 'Operating point';
COMMENT ON COLUMN internal.estimate.precision IS 'Of weights, activations and products';
COMMENT ON COLUMN internal.estimate.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.estimate.runtime IS 'How the software stack launches work';
COMMENT ON COLUMN internal.estimate.calibration IS 'Calibration used, by name and first digits of its digest; none for the class defaults';
COMMENT ON COLUMN internal.estimate.calibration_digest IS 'calibration; empty for none';
COMMENT ON COLUMN internal.estimate.refusal IS 'Why the hardware cannot run it; null where it can';
COMMENT ON COLUMN internal.estimate.latency_fs IS 'Femtoseconds, per batch';
COMMENT ON COLUMN internal.estimate.interval_fs IS 'Femtoseconds from one batch to the next';
COMMENT ON COLUMN internal.estimate.energy_fj IS 'Femtojoules, per batch, static energy included';
COMMENT ON COLUMN internal.estimate.clock_fraction IS 'Of the nominal clock; below 1 where the power cap gives way';
COMMENT ON COLUMN internal.estimate.weight_bytes IS 'Weights read, at this precision';
COMMENT ON COLUMN internal.estimate.activation_bytes IS 'Peak of live activations';
COMMENT ON COLUMN internal.estimate.mac_count IS 'Multiply-accumulates of the whole batch';
COMMENT ON COLUMN internal.estimate.formula_version IS 'Digest of the formulas of its class';
COMMENT ON COLUMN internal.estimate.package_version IS 'joulemap version that evaluated it';
COMMENT ON COLUMN internal.estimate.created_at IS 'When it was stored, UTC';
COMMENT ON COLUMN internal.estimate.content_digest IS 'Of this row, eight digits; `joulemap db check` compares them';

CREATE TABLE internal.placement (
    placement_id INTEGER PRIMARY KEY,
    question_key VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    box VARCHAR NOT NULL,
    goal VARCHAR NOT NULL CHECK (goal IN ('latency', 'throughput', 'energy')),
    precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL CHECK (runtime IN ('eager', 'graph', 'fused', 'engine')),
    devices VARCHAR NOT NULL,
    form VARCHAR NOT NULL CHECK (form IN ('alone', 'split', 'pipeline')),
    latency_fs BIGINT NOT NULL CHECK (latency_fs >= 0),
    copy_fs BIGINT NOT NULL CHECK (copy_fs >= 0),
    period_fs BIGINT NOT NULL CHECK (period_fs >= 0),
    energy_fj BIGINT NOT NULL CHECK (energy_fj >= 0),
    latency_half_width DOUBLE NOT NULL CHECK (latency_half_width >= 0),
    interval_half_width DOUBLE NOT NULL CHECK (interval_half_width >= 0),
    energy_half_width DOUBLE NOT NULL CHECK (energy_half_width >= 0),
    formula_version VARCHAR NOT NULL,
    package_version VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL,
    content_digest VARCHAR NOT NULL DEFAULT ''
);
COMMENT ON TABLE internal.placement IS 'A model on devices of a box that work on it together; the newest of each question';
COMMENT ON COLUMN internal.placement.placement_id IS 'Number of the row';
COMMENT ON COLUMN internal.placement.question_key IS 'Digest of workload, box, hardware and goal: placements of one question have it alike';
COMMENT ON COLUMN internal.placement.model IS 'As it is asked for by';
COMMENT ON COLUMN internal.placement.box IS 'Catalogue id, or the devices that were named, joined by a plus';
COMMENT ON COLUMN internal.placement.goal IS 'What it is best at: latency, throughput or energy';
COMMENT ON COLUMN internal.placement.precision IS 'That was asked for; devices without it have another';
COMMENT ON COLUMN internal.placement.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.placement.runtime IS 'How the software stack launches work';
COMMENT ON COLUMN internal.placement.devices IS 'Those with a part of the model, joined by a plus';
COMMENT ON COLUMN internal.placement.form IS 'alone; split: subgraphs on several, in turn or branches at once; pipeline: batches follow each other through them';
COMMENT ON COLUMN internal.placement.latency_fs IS 'Femtoseconds, per batch, copies included';
COMMENT ON COLUMN internal.placement.copy_fs IS 'Femtoseconds, per batch, of copies between devices';
COMMENT ON COLUMN internal.placement.period_fs IS 'Femtoseconds for which the box draws static power for a batch';
COMMENT ON COLUMN internal.placement.energy_fj IS 'Femtojoules of the whole box, per batch: the sum of its lines';
COMMENT ON COLUMN internal.placement.latency_half_width IS 'Of the 80 % interval of the logarithm of the latency';
COMMENT ON COLUMN internal.placement.interval_half_width IS 'Of the 80 % interval of the logarithm of the period';
COMMENT ON COLUMN internal.placement.energy_half_width IS 'Of the 80 % interval of the logarithm of the energy';
COMMENT ON COLUMN internal.placement.formula_version IS 'Digest of the formulas of all classes of its devices';
COMMENT ON COLUMN internal.placement.package_version IS 'joulemap version that evaluated it';
COMMENT ON COLUMN internal.placement.created_at IS 'When it was stored, UTC';
COMMENT ON COLUMN internal.placement.content_digest IS 'Of this row and its lines, eight digits; `joulemap db check` compares them';

CREATE TABLE internal.placement_line (
    placement_id INTEGER NOT NULL,
    line_index INTEGER NOT NULL CHECK (line_index >= 0),
    device VARCHAR NOT NULL,
    subgraph_index INTEGER CHECK (subgraph_index >= 0),
    component VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    per VARCHAR NOT NULL,
    action_count DOUBLE NOT NULL CHECK (action_count >= 0),
    energy_per_action_fj DOUBLE NOT NULL CHECK (energy_per_action_fj >= 0),
    energy_fj BIGINT NOT NULL CHECK (energy_fj >= 0),
    basis VARCHAR NOT NULL,
    source VARCHAR NOT NULL
);
COMMENT ON TABLE internal.placement_line IS 'A line of the ledger of a placement, per batch';
COMMENT ON COLUMN internal.placement_line.placement_id IS 'placement';
COMMENT ON COLUMN internal.placement_line.line_index IS 'Order in the ledger';
COMMENT ON COLUMN internal.placement_line.device IS 'Of the box; of a copy the one that sends';
COMMENT ON COLUMN internal.placement_line.subgraph_index IS 'Of the workload; null where it belongs to none';
COMMENT ON COLUMN internal.placement_line.component IS 'What acts';
COMMENT ON COLUMN internal.placement_line.action IS 'What it does';
COMMENT ON COLUMN internal.placement_line.per IS 'What one count is';
COMMENT ON COLUMN internal.placement_line.action_count IS 'How often';
COMMENT ON COLUMN internal.placement_line.energy_per_action_fj IS 'At the highest voltage of the die, femtojoules';
COMMENT ON COLUMN internal.placement_line.energy_fj IS 'Femtojoules, at the voltage of the run';
COMMENT ON COLUMN internal.placement_line.basis IS 'Where the price comes from';
COMMENT ON COLUMN internal.placement_line.source IS 'Document, measurement or arithmetic behind it';

CREATE TABLE internal.hardware_level (
    hardware_digest VARCHAR NOT NULL,
    level_index INTEGER NOT NULL CHECK (level_index >= 0),
    level VARCHAR NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('cache', 'scratchpad')),
    per VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_level IS 'On-chip memory levels; capacity and bandwidth are hardware_fact memory.LEVEL.capacity and .bandwidth';
COMMENT ON COLUMN internal.hardware_level.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_level.level_index IS 'Nearest to the units first';
COMMENT ON COLUMN internal.hardware_level.level IS 'Name, e.g. l2';
COMMENT ON COLUMN internal.hardware_level.kind IS 'A cache keeps what was used last, a scratchpad what the program put there';
COMMENT ON COLUMN internal.hardware_level.per IS 'What one instance belongs to';

CREATE TABLE internal.hardware_power_mode (
    hardware_digest VARCHAR NOT NULL,
    mode_index INTEGER NOT NULL CHECK (mode_index >= 0),
    power_mode VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_power_mode IS 'Named operating points; their numbers are hardware_fact power_mode.NAME.clock, .tdp ...';
COMMENT ON COLUMN internal.hardware_power_mode.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_power_mode.mode_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_power_mode.power_mode IS 'Name, e.g. 15W';

CREATE TABLE internal.hardware_link (
    hardware_digest VARCHAR NOT NULL,
    link_index INTEGER NOT NULL CHECK (link_index >= 0),
    link VARCHAR NOT NULL,
    generation VARCHAR NOT NULL,
    connects VARCHAR NOT NULL CHECK (connects IN ('device', 'host')),
    topology VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_link IS 'Links to other devices and to the host; their numbers are hardware_fact link.NAME.bandwidth, .link_count ...';
COMMENT ON COLUMN internal.hardware_link.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_link.link_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_link.link IS 'Name, e.g. nvlink';
COMMENT ON COLUMN internal.hardware_link.generation IS 'As its vendor or standard counts; empty where there is but one';
COMMENT ON COLUMN internal.hardware_link.connects IS 'device: others of its kind; host: the processor that it is attached to';
COMMENT ON COLUMN internal.hardware_link.topology IS 'How devices are joined: pair, mesh, ring, torus_2d, torus_3d, switch; empty for a host or where it is not known';

CREATE TABLE internal.hardware_load (
    hardware_digest VARCHAR NOT NULL,
    load_index INTEGER NOT NULL CHECK (load_index >= 0),
    load VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL CHECK (runtime IN ('eager', 'graph', 'fused', 'engine')),
    covers VARCHAR NOT NULL CHECK (covers IN ('board', 'system')),
    tracer_version VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_load IS 'Workloads under which somebody measured what a board draws; the power is hardware_fact load.NAME.power';
COMMENT ON COLUMN internal.hardware_load.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_load.load_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_load.load IS 'Name';
COMMENT ON COLUMN internal.hardware_load.model IS 'Of the workload, one that ships';
COMMENT ON COLUMN internal.hardware_load.precision IS 'Of the workload';
COMMENT ON COLUMN internal.hardware_load.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.hardware_load.runtime IS 'eager, graph, fused or engine';
COMMENT ON COLUMN internal.hardware_load.covers IS 'board; or system: more than the board, which draws no more';
COMMENT ON COLUMN internal.hardware_load.tracer_version IS 'Of the workload';

CREATE TABLE internal.hardware_operator (
    hardware_digest VARCHAR NOT NULL,
    operator_index INTEGER NOT NULL CHECK (operator_index >= 0),
    operator VARCHAR NOT NULL,
    compiler VARCHAR NOT NULL,
    cut VARCHAR NOT NULL CHECK (cut IN ('first', 'stretch', 'each')),
    host VARCHAR NOT NULL,
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> '')
);
COMMENT ON TABLE internal.hardware_operator IS 'Operators that the compiler of a hardware runs on it; none for hardware that runs them all';
COMMENT ON COLUMN internal.hardware_operator.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_operator.operator_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_operator.operator IS 'A kind, an operation, or an operation of one kind as conv.conv2d';
COMMENT ON COLUMN internal.hardware_operator.compiler IS 'Its name';
COMMENT ON COLUMN internal.hardware_operator.cut IS 'What it keeps of a model that it does not run whole. first: all up to the first operator that it does not run; stretch: one stretch of operators; each: every operator that it runs';
COMMENT ON COLUMN internal.hardware_operator.host IS 'The hardware that computes the rest where none is named; empty for none';
COMMENT ON COLUMN internal.hardware_operator.basis IS 'How sure the list is';
COMMENT ON COLUMN internal.hardware_operator.source IS 'Who says so';

CREATE TABLE internal.calibration (
    calibration_digest VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    hardware VARCHAR NOT NULL,
    hardware_digest VARCHAR NOT NULL,
    place VARCHAR NOT NULL,
    formula_version VARCHAR NOT NULL,
    data_digest VARCHAR NOT NULL,
    hardware_generation VARCHAR NOT NULL,
    measurement_count INTEGER NOT NULL CHECK (measurement_count > 0),
    latency_count INTEGER NOT NULL CHECK (latency_count >= 0),
    energy_count INTEGER NOT NULL CHECK (energy_count >= 0),
    latency_credibility_fraction DOUBLE NOT NULL
    CHECK (latency_credibility_fraction >= 0 AND latency_credibility_fraction <= 1),
    energy_credibility_fraction DOUBLE NOT NULL
    CHECK (energy_credibility_fraction >= 0 AND energy_credibility_fraction <= 1),
    runtimes VARCHAR[] NOT NULL,
    precisions VARCHAR[] NOT NULL,
    families VARCHAR[] NOT NULL,
    content_digest VARCHAR NOT NULL DEFAULT ''
);
COMMENT ON TABLE internal.calibration IS 'A calibration that runs have used; never changed, another fit is another digest';
COMMENT ON COLUMN internal.calibration.calibration_digest IS 'Of every byte of its file';
COMMENT ON COLUMN internal.calibration.name IS 'Of its file';
COMMENT ON COLUMN internal.calibration.hardware IS 'Id of the hardware that it is for';
COMMENT ON COLUMN internal.calibration.hardware_digest IS 'hardware_version that it was fitted to: without it, at the default power mode';
COMMENT ON COLUMN internal.calibration.place IS 'shipped, the file, or given by a program';
COMMENT ON COLUMN internal.calibration.formula_version IS 'Digest of the formulas that it was fitted with';
COMMENT ON COLUMN internal.calibration.data_digest IS 'Of the measurements that it was fitted to';
COMMENT ON COLUMN internal.calibration.hardware_generation IS 'Class, microarchitecture and process node of hardware that may inherit it';
COMMENT ON COLUMN internal.calibration.measurement_count IS 'Measurements that it was fitted to';
COMMENT ON COLUMN internal.calibration.latency_count IS 'Of them, with a latency';
COMMENT ON COLUMN internal.calibration.energy_count IS 'Of them, with an energy';
COMMENT ON COLUMN internal.calibration.latency_credibility_fraction IS 'How far coefficients went from the class to what fits best';
COMMENT ON COLUMN internal.calibration.energy_credibility_fraction IS 'The same of energy scales and static power';
COMMENT ON COLUMN internal.calibration.runtimes IS 'Of the measurements';
COMMENT ON COLUMN internal.calibration.precisions IS 'Of the measurements';
COMMENT ON COLUMN internal.calibration.families IS 'Of the models measured';
COMMENT ON COLUMN internal.calibration.content_digest IS 'Of this row and those of its coefficients and errors, eight digits each; `joulemap db check` compares them';

CREATE TABLE internal.calibration_coefficient (
    calibration_digest VARCHAR NOT NULL,
    coefficient_index INTEGER NOT NULL CHECK (coefficient_index >= 0),
    part VARCHAR NOT NULL CHECK (part IN ('time', 'energy', 'static')),
    name VARCHAR NOT NULL,
    default_value DOUBLE NOT NULL,
    value DOUBLE NOT NULL,
    unit VARCHAR NOT NULL,
    data_weight_fraction DOUBLE NOT NULL CHECK (data_weight_fraction >= 0 AND data_weight_fraction <= 1),
    is_determined BOOLEAN NOT NULL,
    meaning VARCHAR NOT NULL
);
COMMENT ON TABLE internal.calibration_coefficient IS 'What a calibration changed';
COMMENT ON COLUMN internal.calibration_coefficient.calibration_digest IS 'calibration';
COMMENT ON COLUMN internal.calibration_coefficient.coefficient_index IS 'Order in the file';
COMMENT ON COLUMN internal.calibration_coefficient.part IS 'time: a coefficient; energy: a factor on energies per action; static: static power';
COMMENT ON COLUMN internal.calibration_coefficient.name IS 'Coefficient or energy scale';
COMMENT ON COLUMN internal.calibration_coefficient.default_value IS 'Without the calibration';
COMMENT ON COLUMN internal.calibration_coefficient.value IS 'With it';
COMMENT ON COLUMN internal.calibration_coefficient.unit IS 'SI unit; 1 for a factor or share';
COMMENT ON COLUMN internal.calibration_coefficient.data_weight_fraction IS 'Part of what is known of it that the measurements said';
COMMENT ON COLUMN internal.calibration_coefficient.is_determined IS 'Whether that is enough for it to count as measured';
COMMENT ON COLUMN internal.calibration_coefficient.meaning IS 'What it is';

CREATE TABLE internal.calibration_error (
    calibration_digest VARCHAR NOT NULL,
    error_index INTEGER NOT NULL CHECK (error_index >= 0),
    quantity VARCHAR NOT NULL CHECK (quantity IN ('latency', 'energy')),
    split VARCHAR NOT NULL CHECK (split IN ('uncalibrated', 'fitted', 'cross_validated')),
    runtime VARCHAR,
    precision VARCHAR,
    batch INTEGER,
    family VARCHAR,
    measurement_count INTEGER NOT NULL CHECK (measurement_count > 0),
    mean_error_fraction DOUBLE NOT NULL,
    median_error_fraction DOUBLE NOT NULL,
    worst_error_fraction DOUBLE NOT NULL,
    rank_correlation DOUBLE
);
COMMENT ON TABLE internal.calibration_error IS 'How far predictions were from the measurements that a calibration was fitted to';
COMMENT ON COLUMN internal.calibration_error.calibration_digest IS 'calibration';
COMMENT ON COLUMN internal.calibration_error.error_index IS 'Order in the file';
COMMENT ON COLUMN internal.calibration_error.quantity IS 'latency or energy';
COMMENT ON COLUMN internal.calibration_error.split IS 'uncalibrated: class defaults; fitted: rows of the fit; cross_validated: each family by a fit to all others';
COMMENT ON COLUMN internal.calibration_error.runtime IS 'Of the rows; null for all';
COMMENT ON COLUMN internal.calibration_error.precision IS 'Of the rows; null for all';
COMMENT ON COLUMN internal.calibration_error.batch IS 'Of the rows; null for all';
COMMENT ON COLUMN internal.calibration_error.family IS 'Of the rows'' models; null for all';
COMMENT ON COLUMN internal.calibration_error.measurement_count IS 'Rows';
COMMENT ON COLUMN internal.calibration_error.mean_error_fraction IS 'Mean absolute relative error';
COMMENT ON COLUMN internal.calibration_error.median_error_fraction IS 'Median absolute relative error';
COMMENT ON COLUMN internal.calibration_error.worst_error_fraction IS 'Signed relative error of the row that is furthest off; positive is predicted too high';
COMMENT ON COLUMN internal.calibration_error.rank_correlation IS 'Spearman''s; null below three rows';

CREATE TABLE internal.operator_measurement (
    hardware VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL CHECK (runtime IN ('eager', 'graph', 'fused', 'engine')),
    operation VARCHAR NOT NULL,
    shapes VARCHAR NOT NULL,
    operator_count INTEGER NOT NULL CHECK (operator_count >= 0),
    kernels VARCHAR NOT NULL CHECK (kernels <> ''),
    call_count INTEGER NOT NULL CHECK (call_count > 0),
    device_time_s DOUBLE NOT NULL CHECK (device_time_s > 0),
    is_overlapping BOOLEAN NOT NULL,
    source VARCHAR NOT NULL CHECK (source <> ''),
    conditions VARCHAR NOT NULL,
    seen VARCHAR NOT NULL
);
COMMENT ON TABLE internal.operator_measurement IS 'Device time of operators inside a model; replaced with the catalogue';
COMMENT ON COLUMN internal.operator_measurement.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.operator_measurement.model IS 'Model name';
COMMENT ON COLUMN internal.operator_measurement.precision IS 'As measured';
COMMENT ON COLUMN internal.operator_measurement.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.operator_measurement.runtime IS 'eager, graph or fused';
COMMENT ON COLUMN internal.operator_measurement.operation IS 'As in operator_signatures; empty for kernels that no operator of the trace stands for';
COMMENT ON COLUMN internal.operator_measurement.shapes IS 'As in operator_signatures; of a row without operation, the shapes of its kernels'' arguments';
COMMENT ON COLUMN internal.operator_measurement.operator_count IS 'Operators of the trace with this operation and these shapes';
COMMENT ON COLUMN internal.operator_measurement.kernels IS 'ATen operators that run them, in alphabetical order';
COMMENT ON COLUMN internal.operator_measurement.call_count IS 'Calls of those in one pass of the model';
COMMENT ON COLUMN internal.operator_measurement.device_time_s IS 'Of all calls, without the gaps between kernels';
COMMENT ON COLUMN internal.operator_measurement.is_overlapping IS 'Its kernels run side by side in a graph and take less time there: a grouped convolution';
COMMENT ON COLUMN internal.operator_measurement.source IS 'Where the row comes from';
COMMENT ON COLUMN internal.operator_measurement.conditions IS 'What the number depends on';
COMMENT ON COLUMN internal.operator_measurement.seen IS 'Which coefficients were chosen with this row in view; empty where none was';

CREATE TABLE internal.cost_assumption (
    assumption_index INTEGER NOT NULL CHECK (assumption_index >= 0),
    assumption VARCHAR PRIMARY KEY,
    value DOUBLE NOT NULL CHECK (value >= 0),
    unit VARCHAR NOT NULL,
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL
);
COMMENT ON TABLE internal.cost_assumption IS 'What a price per inference assumes of the use of a chip, of the current catalogue';
COMMENT ON COLUMN internal.cost_assumption.assumption_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.cost_assumption.assumption IS 'utilization, lifetime, hours, pue, electricity or host';
COMMENT ON COLUMN internal.cost_assumption.value IS 'In unit';
COMMENT ON COLUMN internal.cost_assumption.unit IS 'As its name is used: 1, year, h/year, USD/kWh';
COMMENT ON COLUMN internal.cost_assumption.basis IS 'Where the number comes from';
COMMENT ON COLUMN internal.cost_assumption.source IS 'Document or arithmetic';
COMMENT ON COLUMN internal.cost_assumption.note IS 'What a reader must know to use it well';

CREATE TABLE internal.grid_region (
    region_index INTEGER NOT NULL CHECK (region_index >= 0),
    region VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    year INTEGER NOT NULL,
    gco2_per_kwh DOUBLE NOT NULL CHECK (gco2_per_kwh >= 0),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL
);
COMMENT ON TABLE internal.grid_region IS 'How much carbon dioxide a kilowatt-hour stands for, by grid, of the current catalogue';
COMMENT ON COLUMN internal.grid_region.region_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.grid_region.region IS 'Id: world, eu, or a country''s two letters';
COMMENT ON COLUMN internal.grid_region.name IS 'Name for people';
COMMENT ON COLUMN internal.grid_region.year IS 'Of the figure';
COMMENT ON COLUMN internal.grid_region.gco2_per_kwh IS 'Yearly average, grams of CO2 equivalents';
COMMENT ON COLUMN internal.grid_region.basis IS 'Where the number comes from';
COMMENT ON COLUMN internal.grid_region.source IS 'Document or arithmetic';
COMMENT ON COLUMN internal.grid_region.note IS 'What a reader must know to use it well';

CREATE TABLE internal.offer (
    offer_index INTEGER PRIMARY KEY CHECK (offer_index >= 0),
    hardware VARCHAR NOT NULL,
    way VARCHAR NOT NULL CHECK (way IN ('rented', 'bought')),
    kind VARCHAR NOT NULL CHECK (kind <> ''),
    seller VARCHAR NOT NULL CHECK (seller <> ''),
    date VARCHAR NOT NULL,
    usd DOUBLE NOT NULL CHECK (usd > 0),
    unit VARCHAR NOT NULL CHECK (unit IN ('USD/h', 'USD')),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL
);
COMMENT ON TABLE internal.offer IS 'Prices that sellers ask for one device, of the current catalogue';
COMMENT ON COLUMN internal.offer.offer_index IS 'Order in the catalogue: the first of a hardware and way stands for it';
COMMENT ON COLUMN internal.offer.hardware IS 'Id';
COMMENT ON COLUMN internal.offer.way IS 'rented or bought';
COMMENT ON COLUMN internal.offer.kind IS 'hyperscaler, cloud, marketplace, reserved, spot, list or retail';
COMMENT ON COLUMN internal.offer.seller IS 'Who asks it';
COMMENT ON COLUMN internal.offer.date IS 'Day, month or year of the price; empty where its source has none';
COMMENT ON COLUMN internal.offer.usd IS 'Price of one device, per hour where it is rented';
COMMENT ON COLUMN internal.offer.unit IS 'USD/h or USD';
COMMENT ON COLUMN internal.offer.basis IS 'Where the number comes from';
COMMENT ON COLUMN internal.offer.source IS 'Document or page';
COMMENT ON COLUMN internal.offer.note IS 'What the price buys, and how it was computed';

CREATE TABLE internal.seller_price (
    price_index INTEGER NOT NULL CHECK (price_index >= 0),
    hardware VARCHAR NOT NULL,
    way VARCHAR NOT NULL CHECK (way IN ('rented', 'bought')),
    kind VARCHAR NOT NULL CHECK (kind <> ''),
    kind_index INTEGER NOT NULL CHECK (kind_index >= 0),
    usd DOUBLE NOT NULL CHECK (usd > 0),
    half_width DOUBLE NOT NULL CHECK (half_width >= 0),
    seller VARCHAR NOT NULL,
    told VARCHAR NOT NULL,
    offer_count INTEGER NOT NULL CHECK (offer_count > 0),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    reference_usd DOUBLE NOT NULL CHECK (reference_usd > 0),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL,
    PRIMARY KEY (hardware, kind)
);
COMMENT ON TABLE internal.seller_price IS 'Price of each hardware at each kind of seller: the median over sellers of their newest offers';
COMMENT ON COLUMN internal.seller_price.price_index IS 'Order';
COMMENT ON COLUMN internal.seller_price.hardware IS 'Id';
COMMENT ON COLUMN internal.seller_price.way IS 'rented or bought';
COMMENT ON COLUMN internal.seller_price.kind IS 'As of an offer';
COMMENT ON COLUMN internal.seller_price.kind_index IS 'The lowest is compared where two kinds have offers of as many hardware';
COMMENT ON COLUMN internal.seller_price.usd IS 'Of one device, per hour where it is rented';
COMMENT ON COLUMN internal.seller_price.half_width IS 'Of the 80 % interval of the natural logarithm of the price, over sellers';
COMMENT ON COLUMN internal.seller_price.seller IS 'Name of the one seller, whose prices err together; kind and hardware where several sell it';
COMMENT ON COLUMN internal.seller_price.told IS 'Who asks it, and when';
COMMENT ON COLUMN internal.seller_price.offer_count IS 'Sellers';
COMMENT ON COLUMN internal.seller_price.basis IS 'Least sure of the offers';
COMMENT ON COLUMN internal.seller_price.reference_usd IS 'Price of the record of the hardware, which offers stand in place of';
COMMENT ON COLUMN internal.seller_price.source IS 'Of the offers';
COMMENT ON COLUMN internal.seller_price.note IS 'What the price buys, or what each seller asks';

CREATE TABLE internal.metric (
    metric_index INTEGER NOT NULL CHECK (metric_index >= 0),
    name VARCHAR PRIMARY KEY,
    label VARCHAR NOT NULL,
    unit VARCHAR NOT NULL,
    column_name VARCHAR NOT NULL,
    per VARCHAR NOT NULL,
    is_higher_better BOOLEAN NOT NULL,
    missing VARCHAR NOT NULL,
    latency_power DOUBLE NOT NULL,
    energy_power DOUBLE NOT NULL
);
COMMENT ON TABLE internal.metric IS 'What runs are compared, ranked and chosen by: the table of the program';
COMMENT ON COLUMN internal.metric.metric_index IS 'Order in the program';
COMMENT ON COLUMN internal.metric.name IS 'Name';
COMMENT ON COLUMN internal.metric.label IS 'Name for people';
COMMENT ON COLUMN internal.metric.unit IS 'SI unit, or USD';
COMMENT ON COLUMN internal.metric.column_name IS 'Column that holds it, in runs or what a choice adds to it';
COMMENT ON COLUMN internal.metric.per IS 'What one value is of: batch, inference, second, chip, million inferences';
COMMENT ON COLUMN internal.metric.is_higher_better IS 'Whether more of it is better';
COMMENT ON COLUMN internal.metric.missing IS 'What is not known where it is null; empty where it always is';
COMMENT ON COLUMN internal.metric.latency_power IS 'How its logarithm follows that of the latency';
COMMENT ON COLUMN internal.metric.energy_power IS 'How its logarithm follows that of the energy';

CREATE TABLE internal.table_digest (
    table_name VARCHAR PRIMARY KEY,
    content_digest VARCHAR NOT NULL
);
COMMENT ON TABLE internal.table_digest IS 'Digests of the tables that are replaced as a whole when the catalogue changes, and of the sets of runs, workloads, hardware versions, calibrations, measurements and bulk estimates';
COMMENT ON COLUMN internal.table_digest.table_name IS 'Table';
COMMENT ON COLUMN internal.table_digest.content_digest IS 'Of all its rows, or of all their digests; `joulemap db check` compares them';

CREATE TABLE internal.error_scale (
    scale_index INTEGER PRIMARY KEY CHECK (scale_index >= 0),
    quantity VARCHAR NOT NULL CHECK (quantity IN ('latency', 'power')),
    level INTEGER NOT NULL CHECK (level >= 0),
    work VARCHAR NOT NULL,
    architecture VARCHAR NOT NULL,
    runtime VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    hardware VARCHAR NOT NULL,
    half_width DOUBLE NOT NULL CHECK (half_width > 0),
    group_count INTEGER NOT NULL CHECK (group_count > 0),
    row_count INTEGER NOT NULL CHECK (row_count > 0),
    least_ops_per_s DOUBLE NOT NULL CHECK (least_ops_per_s >= 0),
    most_ops_per_s DOUBLE NOT NULL CHECK (most_ops_per_s > 0)
);
COMMENT ON COLUMN internal.error_scale.least_ops_per_s IS 'Smallest peak of the boards that were measured; 0 where it holds for every size';
COMMENT ON COLUMN internal.error_scale.most_ops_per_s IS 'Largest peak of them; infinity likewise';
COMMENT ON TABLE internal.error_scale IS 'How far predictions were from measurements, by groups of them, of the current catalogue; empty texts stand for all';
COMMENT ON COLUMN internal.error_scale.scale_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.error_scale.quantity IS 'latency or power';
COMMENT ON COLUMN internal.error_scale.level IS 'How fine the group is: 0 all, 1 work, 2 class, 3 work in a class, then runtime, precision, hardware';
COMMENT ON COLUMN internal.error_scale.work IS 'model, decode, experts, training or decomposition, or the kind of a single operator';
COMMENT ON COLUMN internal.error_scale.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.error_scale.runtime IS 'eager, graph, fused or engine';
COMMENT ON COLUMN internal.error_scale.precision IS 'Of the runs';
COMMENT ON COLUMN internal.error_scale.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.error_scale.half_width IS 'Of an 80 % interval of ln(measured / predicted)';
COMMENT ON COLUMN internal.error_scale.group_count IS 'Model families times boards with measurements';
COMMENT ON COLUMN internal.error_scale.row_count IS 'Measurements';

CREATE TABLE internal.error_share (
    quantity VARCHAR NOT NULL CHECK (quantity IN ('latency', 'power')),
    factor VARCHAR NOT NULL CHECK (factor IN ('class', 'board', 'model', 'board_model', 'case', 'own')),
    share DOUBLE NOT NULL CHECK (share BETWEEN 0 AND 1),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    PRIMARY KEY (quantity, factor)
);
COMMENT ON TABLE internal.error_share IS 'The part of an error''s variance that runs share which are alike in something, and what is left, of the current catalogue';
COMMENT ON COLUMN internal.error_share.quantity IS 'latency or power; the error of an energy is the sum of both';
COMMENT ON COLUMN internal.error_share.factor IS 'What they share: class, board, model (in a class), board_model, case (model, precision, runtime and batch in a class); own: no other run has it';
COMMENT ON COLUMN internal.error_share.share IS 'Of the variance of ln(measured / predicted), together 1';
COMMENT ON COLUMN internal.error_share.basis IS 'Where the number comes from';
COMMENT ON COLUMN internal.error_share.source IS 'Measurements or assumption';

CREATE TABLE internal.serving_scale (
    scale_index INTEGER PRIMARY KEY CHECK (scale_index >= 0),
    quantity VARCHAR NOT NULL CHECK (quantity <> ''),
    level INTEGER NOT NULL CHECK (level >= 0),
    vendor VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    half_width DOUBLE NOT NULL CHECK (half_width > 0),
    group_count INTEGER NOT NULL CHECK (group_count >= 0),
    row_count INTEGER NOT NULL CHECK (row_count >= 0),
    chips VARCHAR NOT NULL
);
COMMENT ON TABLE internal.serving_scale IS 'How far predictions of served models were from measurements, by groups of them, of the current catalogue; empty texts stand for all';
COMMENT ON COLUMN internal.serving_scale.scale_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.serving_scale.quantity IS 'time, for all times and rates, or power';
COMMENT ON COLUMN internal.serving_scale.level IS 'How fine the group is: 0 all, 1 vendor, 2 engine on the vendor''s boards';
COMMENT ON COLUMN internal.serving_scale.vendor IS 'Of the hardware';
COMMENT ON COLUMN internal.serving_scale.engine IS 'Name of the engine, without its release';
COMMENT ON COLUMN internal.serving_scale.half_width IS 'Of an 80 % interval of ln(measured / predicted) of the measured servers';
COMMENT ON COLUMN internal.serving_scale.group_count IS 'Sources times boards with measurements';
COMMENT ON COLUMN internal.serving_scale.row_count IS 'Measurements';
COMMENT ON COLUMN internal.serving_scale.chips IS 'Measured chips of an engine on a vendor''s boards, separated by spaces';

CREATE TABLE internal.power_floor (
    architecture VARCHAR NOT NULL,
    evidence VARCHAR NOT NULL CHECK (evidence IN ('own', 'class')),
    most_ops_per_s DOUBLE NOT NULL CHECK (most_ops_per_s > 0),
    half_width DOUBLE NOT NULL CHECK (half_width > 0),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    PRIMARY KEY (architecture, evidence, most_ops_per_s)
);
COMMENT ON TABLE internal.power_floor IS 'Smallest half-width of a power by class and evidence, of the current catalogue';
COMMENT ON COLUMN internal.power_floor.architecture IS 'Architecture class; empty for all classes without a floor of their own';
COMMENT ON COLUMN internal.power_floor.evidence IS 'own: measurements of the hardware itself; class: of other hardware of its class';
COMMENT ON COLUMN internal.power_floor.most_ops_per_s IS 'Peak up to which it applies; the one with the smallest peak counts';
COMMENT ON COLUMN internal.power_floor.half_width IS 'Of an 80 % interval of ln(measured / predicted)';
COMMENT ON COLUMN internal.power_floor.basis IS 'Where the number comes from';
COMMENT ON COLUMN internal.power_floor.source IS 'Measurements or assumption';

CREATE TABLE internal.basis_spread (
    number_basis VARCHAR PRIMARY KEY,
    half_width DOUBLE NOT NULL CHECK (half_width > 0),
    own_price_half_width DOUBLE NOT NULL CHECK (own_price_half_width >= 0),
    own_number_half_width DOUBLE NOT NULL CHECK (own_number_half_width >= 0),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> '')
);
COMMENT ON TABLE internal.basis_spread IS 'How far numbers of a basis may be off together, of the current catalogue';
COMMENT ON COLUMN internal.basis_spread.number_basis IS 'Basis of the numbers';
COMMENT ON COLUMN internal.basis_spread.half_width IS 'Of prices per action: of an 80 % interval of the natural logarithm';
COMMENT ON COLUMN internal.basis_spread.own_price_half_width IS 'What such a price of a hardware''s own leaves open beyond one of hardware that was scored, whose errors hold that';
COMMENT ON COLUMN internal.basis_spread.own_number_half_width IS 'The same of a peak, a bandwidth or a clock';
COMMENT ON COLUMN internal.basis_spread.basis IS 'Where the number comes from';
COMMENT ON COLUMN internal.basis_spread.source IS 'Measurements or assumption';
