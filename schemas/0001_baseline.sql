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
    sold_in VARCHAR NOT NULL DEFAULT '',
    package_version VARCHAR NOT NULL,
    power_mode VARCHAR NOT NULL,
    aliases VARCHAR[] NOT NULL,
    package VARCHAR NOT NULL DEFAULT '',
    doubts VARCHAR[] NOT NULL,
    priced_at VARCHAR NOT NULL,
    boundary VARCHAR NOT NULL,
    described_digest VARCHAR NOT NULL,
    needs_host VARCHAR NOT NULL DEFAULT '',
    is_part BOOLEAN NOT NULL DEFAULT FALSE,
    whole VARCHAR NOT NULL DEFAULT '',
    own_host VARCHAR NOT NULL DEFAULT '',
    host VARCHAR NOT NULL DEFAULT '',
    matmul_precision VARCHAR NOT NULL DEFAULT 'default' CHECK (matmul_precision IN ('default', 'high', 'highest')),
    kernels VARCHAR NOT NULL DEFAULT '',
    helper_digest VARCHAR NOT NULL DEFAULT '',
    changes VARCHAR[] NOT NULL DEFAULT '[]', -- defaults are literals, which every version of the engine stores alike
    content_digest VARCHAR NOT NULL DEFAULT ''
);
COMMENT ON TABLE internal.hardware_version IS 'One description of a hardware target; rows never change, because a changed description has another digest';
COMMENT ON COLUMN internal.hardware_version.hardware_digest IS 'Digest of the bytes of the data file and the class file';
COMMENT ON COLUMN internal.hardware_version.hardware IS 'Catalogue id, e.g. h100_sxm5';
COMMENT ON COLUMN internal.hardware_version.name IS 'Display name';
COMMENT ON COLUMN internal.hardware_version.vendor IS 'Manufacturer';
COMMENT ON COLUMN internal.hardware_version.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.hardware_version.deployment IS 'Place of use: datacenter, edge or embedded';
COMMENT ON COLUMN internal.hardware_version.microarchitecture IS 'Vendor''s name of the design';
COMMENT ON COLUMN internal.hardware_version.unit_name IS 'Vendor''s name of one unit: core, SM, MXU, tile';
COMMENT ON COLUMN internal.hardware_version.memory_type IS 'Type of the off-chip memory';
COMMENT ON COLUMN internal.hardware_version.projection IS 'Reason why the key numbers are projections; empty for a chip that exists';
COMMENT ON COLUMN internal.hardware_version.unavailable IS 'Reason why it cannot be bought or rented, or has only a guessed price; empty if it can';
COMMENT ON COLUMN internal.hardware_version.sold_in IS 'Devices inside which alone it is sold; empty if a board can be ordered';
COMMENT ON COLUMN internal.hardware_version.package_version IS 'joulemap version that wrote the row';
COMMENT ON COLUMN internal.hardware_version.power_mode IS 'Power mode that the numbers refer to';
COMMENT ON COLUMN internal.hardware_version.aliases IS 'Other accepted names';
COMMENT ON COLUMN internal.hardware_version.package IS 'Package with version that describes it; empty for hardware that is built in or in a file';
COMMENT ON COLUMN internal.hardware_version.doubts IS 'Disagreements between sources';
COMMENT ON COLUMN internal.hardware_version.priced_at IS 'Boundary of the measurements that its energies per action were fitted to: board, or chip for circuit energies';
COMMENT ON COLUMN internal.hardware_version.boundary IS 'Parts included in the energy of its runs: chip; board; or system, with host, chassis and power supply';
COMMENT ON COLUMN internal.hardware_version.described_digest IS 'hardware_version without this boundary or these changes; empty if there is none';
COMMENT ON COLUMN internal.hardware_version.needs_host IS 'Slot or port of a computer that it needs, and whose power is not included; empty if it works by itself';
COMMENT ON COLUMN internal.hardware_version.is_part IS 'Whether it is a part of a module or SoC';
COMMENT ON COLUMN internal.hardware_version.whole IS 'Catalogue id of the rest of its module or SoC; empty where needs_host names none';
COMMENT ON COLUMN internal.hardware_version.own_host IS 'Usual host that it shares with no other device; empty without one';
COMMENT ON COLUMN internal.hardware_version.host IS 'Host named in the question: it launches kernels, and its energy is included if needs_host is not empty';
COMMENT ON COLUMN internal.hardware_version.matmul_precision IS 'Setting of the libraries for GEMMs and convolutions of fp32 runs';
COMMENT ON COLUMN internal.hardware_version.kernels IS 'Families of an engine''s kernels, as OPERATION=WORDS, ...; empty without an engine';
COMMENT ON COLUMN internal.hardware_version.helper_digest IS 'hardware_version that runs the operators which its compiler leaves out; empty if there is none';
COMMENT ON COLUMN internal.hardware_version.changes IS 'Numbers that a question changed with --set, which are facts and energies with the source --set; empty if none';
COMMENT ON COLUMN internal.hardware_version.content_digest IS 'Digests of this row and of its facts, precisions, levels, links, power modes and energies, eight digits each; checked by `joulemap db check`';

CREATE TABLE internal.hardware_fact (
    hardware_digest VARCHAR NOT NULL,
    fact_index INTEGER NOT NULL CHECK (fact_index >= 0),
    quantity VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    unit VARCHAR NOT NULL,
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL,
    sources INTEGER CHECK (sources > 0),
    boards INTEGER CHECK (boards > 0),
    models INTEGER CHECK (models > 0)
);
COMMENT ON TABLE internal.hardware_fact IS 'Numbers of a hardware version, except energies per action';
COMMENT ON COLUMN internal.hardware_fact.hardware_digest IS 'hardware_version that the number belongs to';
COMMENT ON COLUMN internal.hardware_fact.fact_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_fact.quantity IS 'Dotted name, e.g. memory.l2.capacity';
COMMENT ON COLUMN internal.hardware_fact.value IS 'Value in this unit';
COMMENT ON COLUMN internal.hardware_fact.unit IS 'SI unit; 1 for a count or ratio';
COMMENT ON COLUMN internal.hardware_fact.basis IS 'Kind of origin: measured, published, derived, scaled, recalled or assumed';
COMMENT ON COLUMN internal.hardware_fact.source IS 'Document, measurement or arithmetic';
COMMENT ON COLUMN internal.hardware_fact.note IS 'Condition or limit of the number';
COMMENT ON COLUMN internal.hardware_fact.sources IS 'Sources of the measurements that the number was fitted to; null for any other number';
COMMENT ON COLUMN internal.hardware_fact.boards IS 'Chips or boards of different types among these measurements';
COMMENT ON COLUMN internal.hardware_fact.models IS 'Models among these measurements; single operators count as one';

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
COMMENT ON COLUMN internal.hardware_precision.precision IS 'Precision, such as fp32, bf16 or int8';
COMMENT ON COLUMN internal.hardware_precision.peak_ops_per_s IS 'Dense peak; one MAC counts as two operations';
COMMENT ON COLUMN internal.hardware_precision.units_count IS 'Number of units with this precision';
COMMENT ON COLUMN internal.hardware_precision.clock_hz IS 'Clock of the published peak';
COMMENT ON COLUMN internal.hardware_precision.operations_per_clock IS 'Operations per unit and clock';
COMMENT ON COLUMN internal.hardware_precision.engine IS 'Component that reaches the peak if a unit has several, such as tensor_core; empty if unknown';
COMMENT ON COLUMN internal.hardware_precision.explanation IS 'Reason why the peak differs from units x operations per clock x clock; empty if it does not';

CREATE TABLE internal.action (
    action_id USMALLINT PRIMARY KEY,
    architecture VARCHAR NOT NULL,
    category VARCHAR NOT NULL,
    common_category VARCHAR NOT NULL CHECK (
        common_category IN (
            'compute', 'register', 'unit_memory', 'chip_memory', 'interconnect', 'off_chip_memory', 'communication',
            'control', 'board', 'unattributed', 'host', 'static'
        )
    ),
    component VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    part VARCHAR NOT NULL CHECK (part IN ('compute', 'memory', 'control', 'static')),
    per VARCHAR NOT NULL,
    UNIQUE (architecture, category, common_category, component, action, part, per)
);
COMMENT ON TABLE internal.action IS 'Actions of the ledger: the events that cost energy on an architecture';
COMMENT ON COLUMN internal.action.action_id IS 'Number used in ledger_line';
COMMENT ON COLUMN internal.action.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.action.category IS 'Category within the architecture';
COMMENT ON COLUMN internal.action.common_category IS 'Category shared by all architectures: unit_memory is inside one unit, chip_memory is shared by all units';
COMMENT ON COLUMN internal.action.component IS 'Component that acts; equal (component, action) pairs of two architectures are the same physical action';
COMMENT ON COLUMN internal.action.action IS 'Name of the action';
COMMENT ON COLUMN internal.action.part IS 'Part of the ledger: compute, memory, control or static';
COMMENT ON COLUMN internal.action.per IS 'Unit of the count: MAC, B, instruction or s';

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
COMMENT ON TABLE internal.action_role IS 'Role of each action, comparable across hardware classes; replaced when the catalogue changes';
COMMENT ON COLUMN internal.action_role.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.action_role.component IS 'Component that acts';
COMMENT ON COLUMN internal.action_role.action IS 'Name of the action';
COMMENT ON COLUMN internal.action_role.role IS 'Role: mac, operand, memory_read, instruction ...';
COMMENT ON COLUMN internal.action_role.amount IS 'Units of the role per count of the action; 0 if a related action is counted instead';
COMMENT ON COLUMN internal.action_role.step IS 'Name of one count of a control action, such as an instruction or a token; empty for other actions';
COMMENT ON COLUMN internal.action_role.way IS 'Mechanism by which the class fulfils the role; empty for the usual one';

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
COMMENT ON TABLE internal.event IS 'Architectural events of a hardware class, such as instructions or cache lines; replaced when the catalogue changes';
COMMENT ON COLUMN internal.event.event_index IS 'Order in the class files';
COMMENT ON COLUMN internal.event.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.event.component IS 'Component in which the event occurs';
COMMENT ON COLUMN internal.event.event IS 'Name of the event';
COMMENT ON COLUMN internal.event.per IS 'Unit of the count: instruction, line, warp, token ...';
COMMENT ON COLUMN internal.event.part_of IS 'Event of the same component that includes this one; empty if there is none';
COMMENT ON COLUMN internal.event.meaning IS 'Description';
COMMENT ON COLUMN internal.event.formula IS 'Formula of the count from actions of the ledger';
COMMENT ON COLUMN internal.event.divisor IS 'Hardware quantity that divides the sum; empty if there is none';
COMMENT ON COLUMN internal.event.is_priced IS 'Whether the ledger has energy for it';

CREATE TABLE internal.event_term (
    event_index USMALLINT NOT NULL,
    architecture VARCHAR NOT NULL,
    component VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    factor DOUBLE NOT NULL,
    floor DOUBLE NOT NULL,
    is_cost BOOLEAN NOT NULL
);
COMMENT ON TABLE internal.event_term IS 'Actions from which the count and the energy of an event are computed';
COMMENT ON COLUMN internal.event_term.event_index IS 'event';
COMMENT ON COLUMN internal.event_term.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.event_term.component IS 'Component that acts';
COMMENT ON COLUMN internal.event_term.action IS 'Name of the action';
COMMENT ON COLUMN internal.event_term.factor IS 'Contribution of one action to the count, before the divisor';
COMMENT ON COLUMN internal.event_term.floor IS 'Contribution of one action to the minimum of the count, before the divisor';
COMMENT ON COLUMN internal.event_term.is_cost IS 'Whether the energy of the action belongs to the event';

CREATE TABLE internal.energy_per_action (
    hardware_digest VARCHAR NOT NULL,
    action_id USMALLINT NOT NULL,
    energy_per_action_fj DOUBLE NOT NULL CHECK (energy_per_action_fj >= 0),
    low_fj DOUBLE,
    high_fj DOUBLE,
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    count_formula VARCHAR NOT NULL,
    action_index INTEGER NOT NULL CHECK (action_index >= 0),
    sources INTEGER CHECK (sources > 0),
    boards INTEGER CHECK (boards > 0),
    models INTEGER CHECK (models > 0)
);
COMMENT ON TABLE internal.energy_per_action IS 'Energies per action of each hardware version, at its process node and highest voltage';
COMMENT ON COLUMN internal.energy_per_action.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.energy_per_action.action_id IS 'action';
COMMENT ON COLUMN internal.energy_per_action.energy_per_action_fj IS 'Energy of one count in femtojoules';
COMMENT ON COLUMN internal.energy_per_action.low_fj IS 'Lower end of the plausible range; null if unknown';
COMMENT ON COLUMN internal.energy_per_action.high_fj IS 'Upper end of the plausible range';
COMMENT ON COLUMN internal.energy_per_action.basis IS 'Kind of origin of the number';
COMMENT ON COLUMN internal.energy_per_action.source IS 'Document, measurement or arithmetic';
COMMENT ON COLUMN internal.energy_per_action.count_formula IS 'Description of how the count is computed for an operator';
COMMENT ON COLUMN internal.energy_per_action.action_index IS 'Order in the description';
COMMENT ON COLUMN internal.energy_per_action.sources IS 'Sources of the measurements that the number was fitted to; null for any other number';
COMMENT ON COLUMN internal.energy_per_action.boards IS 'Chips or boards of different types among these measurements';
COMMENT ON COLUMN internal.energy_per_action.models IS 'Models among these measurements; single operators count as one';

CREATE TABLE internal.catalogue_entry (
    catalogue_digest VARCHAR NOT NULL,
    hardware_index INTEGER NOT NULL CHECK (hardware_index >= 0),
    hardware VARCHAR NOT NULL,
    hardware_digest VARCHAR NOT NULL,
    usual_digest VARCHAR NOT NULL
);
COMMENT ON TABLE internal.catalogue_entry IS 'Current hardware version of each id; replaced when the catalogue changes';
COMMENT ON COLUMN internal.catalogue_entry.catalogue_digest IS 'Digest of all data files of the catalogue';
COMMENT ON COLUMN internal.catalogue_entry.hardware_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.catalogue_entry.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.catalogue_entry.hardware_digest IS 'hardware_version of the description';
COMMENT ON COLUMN internal.catalogue_entry.usual_digest IS 'hardware_version that runs use by default: default mode, board, shipped calibration; possibly not stored yet';

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
COMMENT ON TABLE internal.model_entry IS 'Built-in models';
COMMENT ON COLUMN internal.model_entry.model IS 'Name';
COMMENT ON COLUMN internal.model_entry.family IS 'Model family, such as resnet';
COMMENT ON COLUMN internal.model_entry.task IS 'Task: classification, segmentation, video ...';
COMMENT ON COLUMN internal.model_entry.input_shape IS 'Shape of one sample, without the batch';
COMMENT ON COLUMN internal.model_entry.input_layout IS 'Form of the inputs: tensors, a list of images or a pair of tensors';
COMMENT ON COLUMN internal.model_entry.parameter_count IS 'Published number of parameters of the default weights';
COMMENT ON COLUMN internal.model_entry.traced_parameter_count IS 'Number of elements of all parameters in the trace';
COMMENT ON COLUMN internal.model_entry.mac_count IS 'Multiply-accumulates of the trace at batch 1';
COMMENT ON COLUMN internal.model_entry.published_mac_count IS 'Published multiply-accumulates of the default weights at batch 1';
COMMENT ON COLUMN internal.model_entry.is_traceable IS 'Whether joulemap can trace it';
COMMENT ON COLUMN internal.model_entry.reason IS 'Reason why it cannot be traced; empty if it can';
COMMENT ON COLUMN internal.model_entry.aliases IS 'Other names, and models of equal sizes, separated by spaces';

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
    dimensions MAP(VARCHAR, VARCHAR) NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE internal.workload IS 'One model traced at one input shape';
COMMENT ON COLUMN internal.workload.workload_id IS 'Number used in the tables of its parts';
COMMENT ON COLUMN internal.workload.workload_key IS 'Digest of everything that the trace depends on';
COMMENT ON COLUMN internal.workload.model IS 'Requested name';
COMMENT ON COLUMN internal.workload.source IS 'torchvision:NAME, block:NAME, file:DIGEST:PATH:FACTORY, exported:DIGEST:PATH, timm:NAME or hf:NAME, with its arguments in brackets';
COMMENT ON COLUMN internal.workload.input_spec IS 'Input shapes and dtypes';
COMMENT ON COLUMN internal.workload.input_shape IS 'Shape of one sample of each input, without the batch, such as 3x224x224';
COMMENT ON COLUMN internal.workload.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.workload.inner_batch IS 'Batch that a single operator states itself, multiplied by batch; else 1';
COMMENT ON COLUMN internal.workload.parameter_count IS 'Number of elements of all parameters; shared ones count once';
COMMENT ON COLUMN internal.workload.weight_bytes IS 'Bytes of parameters and buffers that the forward pass reads, at the traced dtype';
COMMENT ON COLUMN internal.workload.work IS 'Kind of work, which selects the errors of predictions: decode (few tokens after a cache), experts (tokens routed to experts), training, decomposition (mostly steps of factorizations and solvers), or model (the rest)';
COMMENT ON COLUMN internal.workload.torch_version IS 'Version of torch that traced it';
COMMENT ON COLUMN internal.workload.torchvision_version IS 'Version of torchvision that built it';
COMMENT ON COLUMN internal.workload.tracer_version IS 'Digest of the code that traced and fused it';
COMMENT ON COLUMN internal.workload.notes IS 'Assumptions of the trace';
COMMENT ON COLUMN internal.workload.dimensions IS 'Values of dimensions that a wing declares, such as the phase of a pass; without those at their default';
COMMENT ON COLUMN internal.workload.created_at IS 'Time of storing, UTC';
COMMENT ON COLUMN internal.workload.content_digest IS 'Digests of this row and of its operators, tensors, accesses, edges, buffers and subgraphs, eight digits each; checked by `joulemap db check`';

CREATE TABLE internal.workload_subgraph (
    workload_id INTEGER NOT NULL,
    subgraph_index INTEGER NOT NULL CHECK (subgraph_index >= 0),
    name VARCHAR NOT NULL,
    pattern VARCHAR NOT NULL,
    step_count BIGINT NOT NULL CHECK (step_count >= 1)
);
COMMENT ON TABLE internal.workload_subgraph IS 'Groups of fused operators; independent of the hardware';
COMMENT ON COLUMN internal.workload_subgraph.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_subgraph.subgraph_index IS 'Order by first operator';
COMMENT ON COLUMN internal.workload_subgraph.name IS 'Name of the leading operator';
COMMENT ON COLUMN internal.workload_subgraph.pattern IS 'Operations in order, e.g. conv2d+batch_norm+relu';
COMMENT ON COLUMN internal.workload_subgraph.step_count IS 'Dependent steps of a recurrence, decomposition or loop within its one kernel; else 1';

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
COMMENT ON TABLE internal.workload_operator IS 'ATen operators in execution order; counts cover the whole batch';
COMMENT ON COLUMN internal.workload_operator.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_operator.operator_index IS 'Execution order';
COMMENT ON COLUMN internal.workload_operator.subgraph_index IS 'Subgraph that contains it';
COMMENT ON COLUMN internal.workload_operator.name IS 'Unique name: module path, with the operation if the module has several';
COMMENT ON COLUMN internal.workload_operator.module_path IS 'Module path, such as layer4.0.conv2';
COMMENT ON COLUMN internal.workload_operator.operation IS 'Operation, such as conv2d, relu or add';
COMMENT ON COLUMN internal.workload_operator.kind IS 'Kind of operator for the mapping models; uncounted if no formula is known';
COMMENT ON COLUMN internal.workload_operator.aten IS 'Dispatched ATen operator';
COMMENT ON COLUMN internal.workload_operator.output_shape IS 'Shape of the first output, such as 1x64x56x56';
COMMENT ON COLUMN internal.workload_operator.dtype IS 'Traced dtype of the output';
COMMENT ON COLUMN internal.workload_operator.mac_count IS 'Multiply-accumulates';
COMMENT ON COLUMN internal.workload_operator.elementwise_count IS 'Additions, multiplications, comparisons';
COMMENT ON COLUMN internal.workload_operator.special_count IS 'Special functions: exp, tanh, erf, rsqrt ...';
COMMENT ON COLUMN internal.workload_operator.output_element_count IS 'Number of elements of the first output';
COMMENT ON COLUMN internal.workload_operator.gemm_m IS 'Rows of the GEMM view; 0 without MACs';
COMMENT ON COLUMN internal.workload_operator.gemm_n IS 'Columns of the GEMM view';
COMMENT ON COLUMN internal.workload_operator.gemm_k IS 'Inner dimension of the GEMM view';
COMMENT ON COLUMN internal.workload_operator.gemm_groups IS 'Number of independent GEMMs, or of matrices of a decomposition';
COMMENT ON COLUMN internal.workload_operator.tap_count IS 'Taps of a convolution or pooling window';
COMMENT ON COLUMN internal.workload_operator.is_foldable IS 'Whether it depends on no model input';
COMMENT ON COLUMN internal.workload_operator.scalars IS 'Scalar arguments that affect the cost';
COMMENT ON COLUMN internal.workload_operator.variant IS 'For attention: causal, its kernel family, or both; dequantize for an operator that widens the weights of a GEMM; decomposition for factorizations and solvers; else empty';
COMMENT ON COLUMN internal.workload_operator.step_count IS 'Dependent steps of a recurrence or decomposition within one call; else 1';
COMMENT ON COLUMN internal.workload_operator.run_count IS 'Sequential runs per inference of a repeated pipeline stage, all included in the counts; else 1';

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
COMMENT ON TABLE internal.workload_tensor IS 'Tensors: model inputs, parameters, constants and results of operators';
COMMENT ON COLUMN internal.workload_tensor.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_tensor.tensor_index IS 'Order of appearance';
COMMENT ON COLUMN internal.workload_tensor.shape IS 'Shape, such as 64x3x7x7';
COMMENT ON COLUMN internal.workload_tensor.dtype IS 'Traced dtype';
COMMENT ON COLUMN internal.workload_tensor.byte_count IS 'Bytes of its own storage; 0 for a view';
COMMENT ON COLUMN internal.workload_tensor.role IS 'activation, parameter, input or constant';
COMMENT ON COLUMN internal.workload_tensor.name IS 'Name of a parameter or buffer';
COMMENT ON COLUMN internal.workload_tensor.producer_index IS 'Operator that produces it';
COMMENT ON COLUMN internal.workload_tensor.buffer_index IS 'Activation buffer that stores it';
COMMENT ON COLUMN internal.workload_tensor.is_output IS 'Whether the model returns it';

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
COMMENT ON TABLE internal.workload_access IS 'Reads and writes of tensors by operators';
COMMENT ON COLUMN internal.workload_access.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_access.access_index IS 'Execution order; an operator may read several parts of one tensor';
COMMENT ON COLUMN internal.workload_access.operator_index IS 'Operator that reads or writes';
COMMENT ON COLUMN internal.workload_access.tensor_index IS 'Tensor that is read or written';
COMMENT ON COLUMN internal.workload_access.role IS 'input, weight or output';
COMMENT ON COLUMN internal.workload_access.byte_count IS 'Bytes at the traced dtype, if the operator is a separate kernel';
COMMENT ON COLUMN internal.workload_access.fused_byte_count IS 'Bytes at the traced dtype, if its subgraph is one kernel';
COMMENT ON COLUMN internal.workload_access.item_bytes IS 'Bytes of one element if floating point of 16 bits or more; else 0';
COMMENT ON COLUMN internal.workload_access.is_boundary IS 'Whether the tensor is an input or output of the model';

CREATE TABLE internal.workload_finding (
    workload_id INTEGER NOT NULL,
    finding_index INTEGER NOT NULL CHECK (finding_index >= 0),
    kind VARCHAR NOT NULL CHECK (kind IN ('read', 'sized', 'idle')),
    module_path VARCHAR NOT NULL,
    operator VARCHAR NOT NULL,
    file VARCHAR NOT NULL,
    line INTEGER NOT NULL CHECK (line >= 0),
    assumed VARCHAR NOT NULL
);
COMMENT ON TABLE internal.workload_finding IS 'Places where a trace depends on data, and modules that it did not reach';
COMMENT ON COLUMN internal.workload_finding.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_finding.finding_index IS 'Order: reads of data as they ran, then modules';
COMMENT ON COLUMN internal.workload_finding.kind IS 'read: Python read a value that depends on data; sized: a result has a size that depends on data; idle: a module with weights never ran';
COMMENT ON COLUMN internal.workload_finding.module_path IS 'Module that read the data or never ran';
COMMENT ON COLUMN internal.workload_finding.operator IS 'Operator or method that reads the data; empty for a module that never ran';
COMMENT ON COLUMN internal.workload_finding.file IS 'Name of the file of the code that reads the data';
COMMENT ON COLUMN internal.workload_finding.line IS 'Line in that file; 0 if unknown';
COMMENT ON COLUMN internal.workload_finding.assumed IS 'Value that Python got; empty for a size or a list';

CREATE TABLE internal.workload_edge (
    workload_id INTEGER NOT NULL,
    edge_index INTEGER NOT NULL CHECK (edge_index >= 0),
    producer_index INTEGER NOT NULL,
    consumer_index INTEGER NOT NULL,
    tensor_index INTEGER NOT NULL,
    CHECK (producer_index < consumer_index)
);
COMMENT ON TABLE internal.workload_edge IS 'Data dependencies between operators';
COMMENT ON COLUMN internal.workload_edge.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_edge.edge_index IS 'Execution order; an operator may read one result twice';
COMMENT ON COLUMN internal.workload_edge.producer_index IS 'Operator that writes the tensor';
COMMENT ON COLUMN internal.workload_edge.consumer_index IS 'Operator that reads the tensor';
COMMENT ON COLUMN internal.workload_edge.tensor_index IS 'Tensor';

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
COMMENT ON TABLE internal.workload_buffer IS 'Activation buffers with their lifetimes';
COMMENT ON COLUMN internal.workload_buffer.workload_id IS 'workload';
COMMENT ON COLUMN internal.workload_buffer.buffer_index IS 'Number used in workload_tensor';
COMMENT ON COLUMN internal.workload_buffer.birth_index IS 'Operator that allocates it';
COMMENT ON COLUMN internal.workload_buffer.death_index IS 'Last operator that reads it';
COMMENT ON COLUMN internal.workload_buffer.byte_count IS 'Bytes at the traced dtype';
COMMENT ON COLUMN internal.workload_buffer.item_bytes IS 'Bytes of one element if floating point of 16 bits or more; else 0';
COMMENT ON COLUMN internal.workload_buffer.is_hidden IS 'Whether it stays within its subgraph, so that a fused kernel does not allocate it';
COMMENT ON COLUMN internal.workload_buffer.release_index IS 'Last operator during which an eager program still has it allocated';

CREATE TABLE internal.run (
    run_id INTEGER PRIMARY KEY,
    run_key VARCHAR NOT NULL UNIQUE,
    workload_id INTEGER NOT NULL,
    hardware_digest VARCHAR NOT NULL,
    power_mode VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    weight_precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL,
    calibration VARCHAR NOT NULL,
    refusal VARCHAR,
    refusal_code VARCHAR,
    refusal_values VARCHAR,
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
    broken_laws VARCHAR,
    suppressed_s DOUBLE CHECK (suppressed_s >= 0),
    separate_clock_fraction DOUBLE CHECK (separate_clock_fraction > 0 AND separate_clock_fraction <= 1),
    placement VARCHAR NOT NULL DEFAULT '',
    has_ledger BOOLEAN NOT NULL,
    formula_version VARCHAR NOT NULL,
    package_version VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL,
    calibration_digest VARCHAR NOT NULL,
    is_newest BOOLEAN NOT NULL DEFAULT 'false',
    content_digest VARCHAR NOT NULL DEFAULT '',
    CHECK (refusal IS NOT NULL OR peak_ops_per_s IS NOT NULL)
);
COMMENT ON TABLE internal.run IS 'One workload on one configuration: evaluated, or refused with a reason';
COMMENT ON COLUMN internal.run.run_id IS 'Number used in the tables of its parts';
COMMENT ON COLUMN internal.run.run_key IS 'Digest of everything that the result depends on; equal configurations are stored once';
COMMENT ON COLUMN internal.run.workload_id IS 'workload';
COMMENT ON COLUMN internal.run.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.run.power_mode IS 'Power mode';
COMMENT ON COLUMN internal.run.precision IS 'Precision of activations and GEMMs';
COMMENT ON COLUMN internal.run.weight_precision IS 'Storage format of the weights of GEMMs, such as int4 or int4:64 (groups of 64); by default the precision';
COMMENT ON COLUMN internal.run.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.run.runtime IS 'Execution mode';
COMMENT ON COLUMN internal.run.calibration IS 'Name and first digits of the digest of the calibration; none for class defaults';
COMMENT ON COLUMN internal.run.refusal IS 'Reason why the hardware cannot run it; null for an evaluated run';
COMMENT ON COLUMN internal.run.refusal_code IS 'Kind of the reason, such as precision, memory or compiler; other for a reason without a kind';
COMMENT ON COLUMN internal.run.refusal_values IS 'Values of the reason as JSON, in SI units';
COMMENT ON COLUMN internal.run.units_total_count IS 'Number of units with this precision';
COMMENT ON COLUMN internal.run.peak_ops_per_s IS 'Dense peak at this precision';
COMMENT ON COLUMN internal.run.memory_bandwidth_bytes_per_s IS 'Published bandwidth of the off-chip memory';
COMMENT ON COLUMN internal.run.weight_bytes IS 'Bytes of parameters and buffers read, in their storage format';
COMMENT ON COLUMN internal.run.activation_bytes IS 'Peak bytes of live activations in execution order';
COMMENT ON COLUMN internal.run.clock_fraction IS 'Clock as a fraction of the full clock; below 1 if the power cap lowers it';
COMMENT ON COLUMN internal.run.clock_hz IS 'Clock under the power cap in steady state';
COMMENT ON COLUMN internal.run.voltage_factor IS 'Energy of an on-chip action at this clock, relative to the highest voltage: the square of the voltage ratio';
COMMENT ON COLUMN internal.run.uncapped_power_w IS 'Power at the full clock of the power mode';
COMMENT ON COLUMN internal.run.placement IS 'For a box: form of the placement and its devices, such as split cpu+npu; empty for a chip';
COMMENT ON COLUMN internal.run.throughput_limit IS 'Limit of the batch rate, such as memory bandwidth; latency if batches do not overlap, power cap if it lowers the clock';
COMMENT ON COLUMN internal.run.broken_laws IS 'Laws that its numbers break, joined by commas; empty if it obeys all';
COMMENT ON COLUMN internal.run.suppressed_s IS 'Part of the latency in non-maximum suppressions, whose number of boxes is assumed';
COMMENT ON COLUMN internal.run.separate_clock_fraction IS 'clock_fraction if every ATen call is a separate kernel; null without a ledger';
COMMENT ON COLUMN internal.run.has_ledger IS 'Whether subgraphs, operators and ledger are stored; false for a refused run and for one with only totals, in point_total and point_action';
COMMENT ON COLUMN internal.run.formula_version IS 'Digest of the formulas of its hardware class';
COMMENT ON COLUMN internal.run.package_version IS 'joulemap version that evaluated it';
COMMENT ON COLUMN internal.run.created_at IS 'Time of storing, UTC';
COMMENT ON COLUMN internal.run.calibration_digest IS 'Digest of the calibration; empty if there is none';
COMMENT ON COLUMN internal.run.is_newest IS 'Whether it is in newest_runs; stored because finding it would read all runs';
COMMENT ON COLUMN internal.run.content_digest IS 'Digests of this row and of its subgraphs, operators, ledger and sums, eight digits each; checked by `joulemap db check`';

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
COMMENT ON TABLE internal.run_subgraph IS 'Allocation: one subgraph placed on the hardware of a run';
COMMENT ON COLUMN internal.run_subgraph.run_id IS 'run';
COMMENT ON COLUMN internal.run_subgraph.subgraph_index IS 'Subgraph of the run''s workload';
COMMENT ON COLUMN internal.run_subgraph.latency_fs IS 'Latency in femtoseconds; subgraphs sum to the run';
COMMENT ON COLUMN internal.run_subgraph.compute_s IS 'Busy time of the units, including padded tiles and partial waves';
COMMENT ON COLUMN internal.run_subgraph.memory_s IS 'Time of the slowest memory level';
COMMENT ON COLUMN internal.run_subgraph.launch_s IS 'Launch time of its kernels';
COMMENT ON COLUMN internal.run_subgraph.pass_s IS 'Memory time of extra passes of the runtime; part of the memory time, but not overlapped';
COMMENT ON COLUMN internal.run_subgraph.dram_bytes IS 'Bytes read from and written to off-chip memory';
COMMENT ON COLUMN internal.run_subgraph.moved_bytes IS 'Bytes across kernel boundaries, at any memory level';
COMMENT ON COLUMN internal.run_subgraph.tile_count IS 'Number of tiles';
COMMENT ON COLUMN internal.run_subgraph.wave_count IS 'Number of waves of tiles over the units';
COMMENT ON COLUMN internal.run_subgraph.units_used_count IS 'Units with work in the largest wave';
COMMENT ON COLUMN internal.run_subgraph.kernel_count IS 'Kernels launched: one in fused, else one per operator; 0 if an engine computes it in another kernel';
COMMENT ON COLUMN internal.run_subgraph.bottleneck IS 'Largest of compute, memory (with extra passes) and launch time';
COMMENT ON COLUMN internal.run_subgraph.executed_mac_count IS 'MAC slots of its tiles, including padding; at least its MACs';
COMMENT ON COLUMN internal.run_subgraph.computed_mac_count IS 'MACs computed; fewer than those of the operators if an algorithm or a mask saves some';
COMMENT ON COLUMN internal.run_subgraph.pass_bytes IS 'Bytes that extra passes of the runtime read and write again, at any memory level';

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
COMMENT ON TABLE internal.run_operator IS 'Exact share of an operator in its subgraph, and its cost as a separate kernel';
COMMENT ON COLUMN internal.run_operator.run_id IS 'run';
COMMENT ON COLUMN internal.run_operator.subgraph_index IS 'Subgraph that contains it';
COMMENT ON COLUMN internal.run_operator.operator_index IS 'Operator of the run''s workload';
COMMENT ON COLUMN internal.run_operator.latency_fs IS 'Latency in femtoseconds; operators sum to their subgraph';
COMMENT ON COLUMN internal.run_operator.moved_bytes IS 'Its share of the bytes across the kernel''s boundary';
COMMENT ON COLUMN internal.run_operator.separate_latency_fs IS 'Latency as a separate kernel, in femtoseconds';
COMMENT ON COLUMN internal.run_operator.separate_energy_fj IS 'Energy as a separate kernel, including static energy, in femtojoules';
COMMENT ON COLUMN internal.run_operator.kernel_count IS '1 if it leads a kernel, else 0';
COMMENT ON COLUMN internal.run_operator.dram_bytes IS 'Bytes read from and written to off-chip memory; operators sum to their subgraph';
COMMENT ON COLUMN internal.run_operator.pass_bytes IS 'Bytes that extra passes of the runtime read and write again, at any memory level';
COMMENT ON COLUMN internal.run_operator.separate_kernel_count IS '1 if it leads a kernel when each call is a separate kernel, else 0';
COMMENT ON COLUMN internal.run_operator.separate_dram_bytes IS 'dram_bytes as a separate kernel';
COMMENT ON COLUMN internal.run_operator.separate_moved_bytes IS 'moved_bytes as a separate kernel';
COMMENT ON COLUMN internal.run_operator.separate_pass_bytes IS 'pass_bytes as a separate kernel';
COMMENT ON COLUMN internal.run_operator.interval_fs IS 'Share of the time between batches, in femtoseconds; operators sum to it, and static power is drawn for it';

CREATE TABLE internal.ledger_line (
    run_id INTEGER NOT NULL,
    subgraph_index INTEGER NOT NULL,
    operator_index INTEGER NOT NULL,
    action_id USMALLINT NOT NULL,
    action_count DOUBLE NOT NULL CHECK (action_count >= 0),
    energy_fj BIGINT NOT NULL CHECK (energy_fj >= 0)
);
COMMENT ON TABLE internal.ledger_line IS 'The ledger, the only stored energy: every energy total is a sum of these lines';
COMMENT ON COLUMN internal.ledger_line.run_id IS 'run';
COMMENT ON COLUMN internal.ledger_line.subgraph_index IS 'Subgraph';
COMMENT ON COLUMN internal.ledger_line.operator_index IS 'Operator';
COMMENT ON COLUMN internal.ledger_line.action_id IS 'Action';
COMMENT ON COLUMN internal.ledger_line.action_count IS 'Count of the action';
COMMENT ON COLUMN internal.ledger_line.energy_fj IS 'round(action_count x energy_per_action_fj x factor), with the run''s voltage_factor for on-chip actions, else 1';

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
COMMENT ON TABLE internal.point_total IS 'Sums over the parts of a run that is stored without its ledger';
COMMENT ON COLUMN internal.point_total.run_id IS 'run';
COMMENT ON COLUMN internal.point_total.latency_fs IS 'Latency in femtoseconds, over subgraphs';
COMMENT ON COLUMN internal.point_total.interval_fs IS 'Femtoseconds from one batch to the next, over operators';
COMMENT ON COLUMN internal.point_total.compute_fs IS 'Latency without launches of compute-bound subgraphs';
COMMENT ON COLUMN internal.point_total.memory_fs IS 'Latency without launches of memory-bound subgraphs';
COMMENT ON COLUMN internal.point_total.launch_fs IS 'Latency of launches';
COMMENT ON COLUMN internal.point_total.compute_bound_fs IS 'Latency of subgraphs bound by the units';
COMMENT ON COLUMN internal.point_total.operands_bound_fs IS 'Latency of subgraphs bound by units whose MACs take less than a tenth of the time';
COMMENT ON COLUMN internal.point_total.memory_bound_fs IS 'Latency of subgraphs bound by the slowest memory level';
COMMENT ON COLUMN internal.point_total.launch_bound_fs IS 'Latency of subgraphs bound by launches';
COMMENT ON COLUMN internal.point_total.communication_bound_fs IS 'Latency of subgraphs bound by exchanges between devices';
COMMENT ON COLUMN internal.point_total.unit_high IS 'Sum of units used x latency over subgraphs, in multiples of 2^26 fs';
COMMENT ON COLUMN internal.point_total.unit_low IS 'Remainder of unit_high, in femtoseconds';
COMMENT ON COLUMN internal.point_total.mac_count IS 'Multiply-accumulates, over operators';
COMMENT ON COLUMN internal.point_total.computed_mac_count IS 'Computed MACs, over subgraphs';
COMMENT ON COLUMN internal.point_total.dram_bytes IS 'Off-chip bytes, over subgraphs';
COMMENT ON COLUMN internal.point_total.moved_bytes IS 'Bytes across kernel boundaries, over subgraphs';

CREATE TABLE internal.point_action (
    run_id INTEGER NOT NULL,
    action_id USMALLINT NOT NULL,
    action_count DOUBLE NOT NULL CHECK (action_count >= 0),
    energy_fj BIGINT NOT NULL CHECK (energy_fj >= 0)
);
COMMENT ON TABLE internal.point_action IS 'Energy by action of a run that is stored without its ledger';
COMMENT ON COLUMN internal.point_action.run_id IS 'run';
COMMENT ON COLUMN internal.point_action.action_id IS 'Action';
COMMENT ON COLUMN internal.point_action.action_count IS 'Count of the action';
COMMENT ON COLUMN internal.point_action.energy_fj IS 'Exact sum over operators, in femtojoules';

CREATE TABLE internal.run_action (
    run_id INTEGER NOT NULL,
    action_id USMALLINT NOT NULL,
    action_count DOUBLE NOT NULL CHECK (action_count >= 0),
    energy_fj HUGEINT NOT NULL CHECK (energy_fj >= 0)
);
COMMENT ON TABLE internal.run_action IS 'Ledger of a run, summed over operators; written in the run''s transaction and checked against the ledger';
COMMENT ON COLUMN internal.run_action.run_id IS 'run';
COMMENT ON COLUMN internal.run_action.action_id IS 'Action';
COMMENT ON COLUMN internal.run_action.action_count IS 'Count of the action, added in operator order';
COMMENT ON COLUMN internal.run_action.energy_fj IS 'Exact sum over operators, in femtojoules';

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
    thin_half_width DOUBLE CHECK (thin_half_width >= 0),
    latency_basis VARCHAR,
    energy_basis VARCHAR,
    latency_group_count INTEGER,
    energy_group_count INTEGER
);
COMMENT ON TABLE internal.run_total IS 'Sums over the parts of an evaluated run, with their intervals; written in the run''s transaction and checked against the parts';
COMMENT ON COLUMN internal.run_total.run_id IS 'run';
COMMENT ON COLUMN internal.run_total.latency_fs IS 'Latency in femtoseconds, over subgraphs';
COMMENT ON COLUMN internal.run_total.interval_fs IS 'Femtoseconds from one batch to the next, over operators';
COMMENT ON COLUMN internal.run_total.energy_fj IS 'Energy in femtojoules, over ledger lines';
COMMENT ON COLUMN internal.run_total.mac_count IS 'Multiply-accumulates, over operators';
COMMENT ON COLUMN internal.run_total.computed_mac_count IS 'Computed MACs, over subgraphs';
COMMENT ON COLUMN internal.run_total.unit_fs IS 'Sum of units used x latency over subgraphs';
COMMENT ON COLUMN internal.run_total.dram_bytes IS 'Off-chip bytes, over subgraphs';
COMMENT ON COLUMN internal.run_total.moved_bytes IS 'Bytes across kernel boundaries, over subgraphs';
COMMENT ON COLUMN internal.run_total.latency_half_width IS 'Half-width of the 80 % interval of ln(measured / predicted) of the latency; null without a table of errors';
COMMENT ON COLUMN internal.run_total.energy_half_width IS 'Half-width of the interval of the energy';
COMMENT ON COLUMN internal.run_total.edp_half_width IS 'Half-width of the interval of energy x latency, in which the error of the latency counts twice';
COMMENT ON COLUMN internal.run_total.power_half_width IS 'Half-width of the interval of energy / latency';
COMMENT ON COLUMN internal.run_total.price_half_width IS 'Part of power_half_width that follows from the basis of the energies per action';
COMMENT ON COLUMN internal.run_total.latency_own_half_width IS 'Part of latency_half_width that follows from uncertain numbers of this hardware, which errors of other hardware do not include; 0 if its numbers are as certain as theirs';
COMMENT ON COLUMN internal.run_total.energy_own_half_width IS 'Part of energy_half_width that follows from uncertain numbers of this hardware';
COMMENT ON COLUMN internal.run_total.thin_half_width IS 'Part of latency_half_width and energy_half_width that thinly measured numbers of an engine add; 0 without an engine';
COMMENT ON COLUMN internal.run_total.latency_basis IS 'Measurements behind the interval of the latency';
COMMENT ON COLUMN internal.run_total.energy_basis IS 'Measurements behind the interval of the energy';
COMMENT ON COLUMN internal.run_total.latency_group_count IS 'Groups of measurements behind the interval of the latency; null for a calibration''s own errors';
COMMENT ON COLUMN internal.run_total.energy_group_count IS 'Groups of measurements behind the interval of the energy; null for a calibration''s own errors';

CREATE TABLE internal.measurement (
    measurement_id INTEGER PRIMARY KEY,
    hardware VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    matmul_precision VARCHAR NOT NULL DEFAULT 'default' CHECK (matmul_precision IN ('default', 'high', 'highest')),
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    boundary VARCHAR NOT NULL,
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
COMMENT ON TABLE internal.measurement IS 'Measured runs, against which predictions are scored';
COMMENT ON COLUMN internal.measurement.measurement_id IS 'Number of the row';
COMMENT ON COLUMN internal.measurement.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.measurement.model IS 'Model name';
COMMENT ON COLUMN internal.measurement.precision IS 'Measured precision';
COMMENT ON COLUMN internal.measurement.matmul_precision IS 'Setting of the library for GEMMs and convolutions at fp32; default at other precisions';
COMMENT ON COLUMN internal.measurement.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.measurement.runtime IS 'Execution mode';
COMMENT ON COLUMN internal.measurement.scope IS 'What the measurement covers, e.g. whole board';
COMMENT ON COLUMN internal.measurement.boundary IS 'Boundary of energy_j and power_w: chip or board; empty without them';
COMMENT ON COLUMN internal.measurement.idle_power_w IS 'Idle power that was subtracted from energy_j; null if energy_j includes it';
COMMENT ON COLUMN internal.measurement.latency_s IS 'Latency per batch';
COMMENT ON COLUMN internal.measurement.throughput_per_s IS 'Inferences per second of one device, in back-to-back batches';
COMMENT ON COLUMN internal.measurement.energy_j IS 'Energy per batch';
COMMENT ON COLUMN internal.measurement.power_w IS 'Mean power';
COMMENT ON COLUMN internal.measurement.wall_power_w IS 'Mean power of the whole system at the wall plug, divided by its devices';
COMMENT ON COLUMN internal.measurement.device_count IS 'Devices of the system at the wall plug; null if unknown';
COMMENT ON COLUMN internal.measurement.peak_memory_bytes IS 'Peak memory that the framework reports';
COMMENT ON COLUMN internal.measurement.source IS 'Origin of the row';
COMMENT ON COLUMN internal.measurement.conditions IS 'Software versions, clocks, cooling and other conditions';
COMMENT ON COLUMN internal.measurement.seen IS 'Coefficients that were chosen with this row in view; empty if there are none';
COMMENT ON COLUMN internal.measurement.stream_count IS 'Streams of the measuring process that had run a GEMM; null if unknown';
COMMENT ON COLUMN internal.measurement.content_digest IS 'Digest of this row, eight digits; checked by `joulemap db check`';

CREATE TABLE internal.serving_measurement (
    serving_measurement_id INTEGER PRIMARY KEY,
    source VARCHAR NOT NULL CHECK (source <> ''),
    hardware VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    engine_version VARCHAR NOT NULL,
    date VARCHAR NOT NULL,
    commit VARCHAR NOT NULL,
    device_count INTEGER CHECK (device_count > 0),
    tensor_parallel INTEGER CHECK (tensor_parallel > 0),
    pipeline_parallel INTEGER CHECK (pipeline_parallel > 0),
    expert_parallel INTEGER CHECK (expert_parallel > 0),
    data_parallel INTEGER CHECK (data_parallel > 0),
    other_hardware VARCHAR NOT NULL,
    layer_split VARCHAR NOT NULL,
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
    client VARCHAR NOT NULL CHECK (client IN ('', 'steady', 'together', 'waves')),
    requests DOUBLE CHECK (requests >= 1),
    length_spread DOUBLE CHECK (length_spread >= 0),
    statistic VARCHAR NOT NULL CHECK (statistic IN ('mean', 'median')),
    prompt_kind VARCHAR NOT NULL,
    phases VARCHAR NOT NULL,
    notes VARCHAR NOT NULL,
    seen VARCHAR NOT NULL,
    content_digest VARCHAR NOT NULL DEFAULT ''
);
COMMENT ON TABLE internal.serving_measurement IS 'Measurements of served language models, against which predictions are scored';
COMMENT ON COLUMN internal.serving_measurement.serving_measurement_id IS 'Number of the row';
COMMENT ON COLUMN internal.serving_measurement.source IS 'Origin of the row';
COMMENT ON COLUMN internal.serving_measurement.hardware IS 'Catalogue id, or the name of hardware outside the catalogue';
COMMENT ON COLUMN internal.serving_measurement.model IS 'Model name in the source';
COMMENT ON COLUMN internal.serving_measurement.scope IS 'Contents of the measurement';
COMMENT ON COLUMN internal.serving_measurement.engine IS 'Serving engine; empty if not stated';
COMMENT ON COLUMN internal.serving_measurement.engine_version IS 'Stated version; empty if not stated';
COMMENT ON COLUMN internal.serving_measurement.date IS 'Date of the measurement, because engines change from month to month';
COMMENT ON COLUMN internal.serving_measurement.commit IS 'Repository and commit of the source';
COMMENT ON COLUMN internal.serving_measurement.device_count IS 'Devices in use; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.tensor_parallel IS 'Devices that share each layer; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.pipeline_parallel IS 'Pipeline stages; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.expert_parallel IS 'Devices that share the experts; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.data_parallel IS 'Replicas that share the requests; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.other_hardware IS 'Other chips that hold a part of the model, joined by +, a processor last; empty for none';
COMMENT ON COLUMN internal.serving_measurement.layer_split IS 'Layers on the hardware and on each other chip, as 20/12; experts 36/23 if the last one has the experts alone, of 23 layers';
COMMENT ON COLUMN internal.serving_measurement.weight_precision IS 'Stated weight format';
COMMENT ON COLUMN internal.serving_measurement.activation_precision IS 'Stated precision of activations; empty if equal to that of the weights or not stated';
COMMENT ON COLUMN internal.serving_measurement.cache_precision IS 'Stated precision of the KV cache; empty if equal to that of the activations or not stated';
COMMENT ON COLUMN internal.serving_measurement.prompt_tokens IS 'Prompt tokens per sequence, or cached tokens before a decode_step; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.output_tokens IS 'Output tokens per sequence; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.batch IS 'Sequences of a call, or the mean number of requests in flight';
COMMENT ON COLUMN internal.serving_measurement.time_to_first_token_s IS 'Time to first token of the whole batch';
COMMENT ON COLUMN internal.serving_measurement.inter_token_latency_s IS 'Duration of one step of the whole batch';
COMMENT ON COLUMN internal.serving_measurement.request_latency_s IS 'Time from first prompt token to last output token';
COMMENT ON COLUMN internal.serving_measurement.output_tokens_per_s IS 'Output tokens per second of all devices';
COMMENT ON COLUMN internal.serving_measurement.total_tokens_per_s IS 'Prompt and output tokens per second of all devices';
COMMENT ON COLUMN internal.serving_measurement.energy_per_output_token_j IS 'Energy of all devices within power_boundary per output token';
COMMENT ON COLUMN internal.serving_measurement.energy_per_request_j IS 'Energy of all devices within power_boundary per request';
COMMENT ON COLUMN internal.serving_measurement.power_w IS 'Mean power of all devices within power_boundary';
COMMENT ON COLUMN internal.serving_measurement.power_boundary IS 'Boundary of energies and powers: device, board, module or wall';
COMMENT ON COLUMN internal.serving_measurement.idle_power_w IS 'Idle power of all devices that was subtracted from the energies; null if the energies include it';
COMMENT ON COLUMN internal.serving_measurement.speculative IS 'Method of speculative decoding; empty or none without it';
COMMENT ON COLUMN internal.serving_measurement.cached_tokens IS 'Prompt tokens per sequence that were already cached; null if none or not stated';
COMMENT ON COLUMN internal.serving_measurement.uses_cache IS 'Whether keys and values are cached between steps';
COMMENT ON COLUMN internal.serving_measurement.context_tokens IS 'Context length per sequence that passes were compiled for; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.file_bytes IS 'Bytes of the stored weights; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.client IS 'How the requests in flight start: steady, together or waves; empty if unknown';
COMMENT ON COLUMN internal.serving_measurement.requests IS 'Number of requests over which times are means; null if not stated';
COMMENT ON COLUMN internal.serving_measurement.length_spread IS 'Relative spread of lengths around their means, both ways; 0 for equal lengths, null if not stated';
COMMENT ON COLUMN internal.serving_measurement.statistic IS 'Statistic of the time between tokens: mean or median';
COMMENT ON COLUMN internal.serving_measurement.phases IS 'separate if prefill and decode have devices of their own; else empty';
COMMENT ON COLUMN internal.serving_measurement.prompt_kind IS 'short for a short prompt of unstated length; else empty';
COMMENT ON COLUMN internal.serving_measurement.notes IS 'Other conditions';
COMMENT ON COLUMN internal.serving_measurement.seen IS 'Coefficients that were chosen with this row in view; empty if there are none';
COMMENT ON COLUMN internal.serving_measurement.content_digest IS 'Digest of this row, eight digits; checked by `joulemap db check`';

CREATE TABLE internal.serving_prediction (
    serving_measurement_id INTEGER PRIMARY KEY,
    prediction_key VARCHAR NOT NULL,
    architecture VARCHAR NOT NULL,
    vendor VARCHAR NOT NULL,
    engine VARCHAR NOT NULL,
    work VARCHAR NOT NULL,
    calibration VARCHAR NOT NULL,
    refusal VARCHAR CHECK (refusal <> ''),
    refusal_code VARCHAR,
    refusal_values VARCHAR,
    time_to_first_token_s DOUBLE CHECK (time_to_first_token_s > 0),
    inter_token_latency_s DOUBLE CHECK (inter_token_latency_s > 0),
    request_latency_s DOUBLE CHECK (request_latency_s > 0),
    output_tokens_per_s DOUBLE CHECK (output_tokens_per_s > 0),
    total_tokens_per_s DOUBLE CHECK (total_tokens_per_s > 0),
    energy_per_output_token_j DOUBLE CHECK (energy_per_output_token_j > 0),
    energy_per_request_j DOUBLE CHECK (energy_per_request_j > 0),
    power_w DOUBLE CHECK (power_w > 0),
    prompt_half_width DOUBLE NOT NULL CHECK (prompt_half_width >= 0),
    token_half_width DOUBLE NOT NULL CHECK (token_half_width >= 0),
    formula_version VARCHAR NOT NULL,
    package_version VARCHAR NOT NULL,
    created_at TIMESTAMP NOT NULL,
    content_digest VARCHAR NOT NULL DEFAULT ''
);
COMMENT ON TABLE internal.serving_prediction IS 'Newest prediction for each serving_measurement, or the reason for its absence';
COMMENT ON COLUMN internal.serving_prediction.serving_measurement_id IS 'serving_measurement';
COMMENT ON COLUMN internal.serving_prediction.prediction_key IS 'Digest of everything that it depends on';
COMMENT ON COLUMN internal.serving_prediction.architecture IS 'Architecture class; empty for unknown hardware';
COMMENT ON COLUMN internal.serving_prediction.vendor IS 'Vendor of the hardware; empty for unknown hardware';
COMMENT ON COLUMN internal.serving_prediction.engine IS 'Modelled engine with its release; empty if there is none';
COMMENT ON COLUMN internal.serving_prediction.work IS 'model, or experts for a mixture of experts; empty for an unknown model';
COMMENT ON COLUMN internal.serving_prediction.calibration IS 'Name and first digits of the digest of the calibration; none for class defaults';
COMMENT ON COLUMN internal.serving_prediction.refusal IS 'Reason for a missing prediction; else null';
COMMENT ON COLUMN internal.serving_prediction.refusal_code IS 'Kind of the reason, such as memory or unstated_output; other for a reason without a kind';
COMMENT ON COLUMN internal.serving_prediction.refusal_values IS 'Values of the reason as JSON, in SI units';
COMMENT ON COLUMN internal.serving_prediction.time_to_first_token_s IS 'Time to first token of the whole batch';
COMMENT ON COLUMN internal.serving_prediction.inter_token_latency_s IS 'Duration of one step of the whole batch';
COMMENT ON COLUMN internal.serving_prediction.request_latency_s IS 'Time from first prompt token to last output token';
COMMENT ON COLUMN internal.serving_prediction.output_tokens_per_s IS 'Output tokens per second of all devices';
COMMENT ON COLUMN internal.serving_prediction.total_tokens_per_s IS 'Prompt and output tokens per second of all devices';
COMMENT ON COLUMN internal.serving_prediction.energy_per_output_token_j IS 'Energy of all devices within power_boundary per output token';
COMMENT ON COLUMN internal.serving_prediction.energy_per_request_j IS 'Energy of all devices within power_boundary per request';
COMMENT ON COLUMN internal.serving_prediction.power_w IS 'Mean power of all devices within power_boundary';
COMMENT ON COLUMN internal.serving_prediction.prompt_half_width IS 'Part of the half-width of times of prompts that thinly measured numbers of the engine add';
COMMENT ON COLUMN internal.serving_prediction.token_half_width IS 'The same part for all other times';
COMMENT ON COLUMN internal.serving_prediction.formula_version IS 'Digest of the formulas of the hardware class and of serving';
COMMENT ON COLUMN internal.serving_prediction.package_version IS 'joulemap version that predicted it';
COMMENT ON COLUMN internal.serving_prediction.created_at IS 'Time of storing, UTC';
COMMENT ON COLUMN internal.serving_prediction.content_digest IS 'Digest of this row, eight digits; checked by `joulemap db check`';

CREATE TABLE internal.estimate (
    estimate_id INTEGER PRIMARY KEY,
    estimate_key VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    hardware VARCHAR NOT NULL,
    hardware_digest VARCHAR NOT NULL,
    power_mode VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL,
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
COMMENT ON TABLE internal.estimate IS 'Totals of a single operator on one configuration, evaluated in bulk without a ledger; the newest per configuration and calibration';
COMMENT ON COLUMN internal.estimate.estimate_id IS 'Number of the row';
COMMENT ON COLUMN internal.estimate.estimate_key IS 'Digest of everything that it depends on';
COMMENT ON COLUMN internal.estimate.model IS 'Operator with its sizes, such as gemm(m=128,n=4096,k=4096)';
COMMENT ON COLUMN internal.estimate.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.estimate.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.estimate.power_mode IS 'Power mode';
COMMENT ON COLUMN internal.estimate.precision IS 'Precision of weights, activations and GEMMs';
COMMENT ON COLUMN internal.estimate.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.estimate.runtime IS 'Execution mode';
COMMENT ON COLUMN internal.estimate.calibration IS 'Name and first digits of the digest of the calibration; none for class defaults';
COMMENT ON COLUMN internal.estimate.calibration_digest IS 'Digest of the calibration; empty if there is none';
COMMENT ON COLUMN internal.estimate.refusal IS 'Reason why the hardware cannot run it; else null';
COMMENT ON COLUMN internal.estimate.latency_fs IS 'Latency per batch in femtoseconds';
COMMENT ON COLUMN internal.estimate.interval_fs IS 'Femtoseconds from one batch to the next';
COMMENT ON COLUMN internal.estimate.energy_fj IS 'Energy per batch in femtojoules, including static energy';
COMMENT ON COLUMN internal.estimate.clock_fraction IS 'Clock as a fraction of the full clock; below 1 if the power cap lowers it';
COMMENT ON COLUMN internal.estimate.weight_bytes IS 'Bytes of the weights read, at this precision';
COMMENT ON COLUMN internal.estimate.activation_bytes IS 'Peak bytes of live activations';
COMMENT ON COLUMN internal.estimate.mac_count IS 'Multiply-accumulates of the whole batch';
COMMENT ON COLUMN internal.estimate.formula_version IS 'Digest of the formulas of its hardware class';
COMMENT ON COLUMN internal.estimate.package_version IS 'joulemap version that evaluated it';
COMMENT ON COLUMN internal.estimate.created_at IS 'Time of storing, UTC';
COMMENT ON COLUMN internal.estimate.content_digest IS 'Digest of this row, eight digits; checked by `joulemap db check`';

CREATE TABLE internal.placement (
    placement_id INTEGER PRIMARY KEY,
    question_key VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    box VARCHAR NOT NULL,
    goal VARCHAR NOT NULL CHECK (goal IN ('latency', 'throughput', 'energy')),
    precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL,
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
COMMENT ON TABLE internal.placement IS 'A model placed on the devices of a box; the newest of each question';
COMMENT ON COLUMN internal.placement.placement_id IS 'Number of the row';
COMMENT ON COLUMN internal.placement.question_key IS 'Digest of workload, box, hardware and goal, equal for all placements of a question';
COMMENT ON COLUMN internal.placement.model IS 'Requested model';
COMMENT ON COLUMN internal.placement.box IS 'Catalogue id, or the named devices, joined by a plus';
COMMENT ON COLUMN internal.placement.goal IS 'Quantity that it minimizes or maximizes: latency, throughput or energy';
COMMENT ON COLUMN internal.placement.precision IS 'Requested precision; devices without it use another';
COMMENT ON COLUMN internal.placement.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.placement.runtime IS 'Execution mode';
COMMENT ON COLUMN internal.placement.devices IS 'Devices with a part of the model, joined by a plus';
COMMENT ON COLUMN internal.placement.form IS 'alone; split (subgraphs on several devices, in sequence or in parallel branches); pipeline (several batches in flight)';
COMMENT ON COLUMN internal.placement.latency_fs IS 'Latency per batch in femtoseconds, including copies';
COMMENT ON COLUMN internal.placement.copy_fs IS 'Time of copies between devices per batch, in femtoseconds';
COMMENT ON COLUMN internal.placement.period_fs IS 'Time per batch for which the box draws static power, in femtoseconds';
COMMENT ON COLUMN internal.placement.energy_fj IS 'Energy of the whole box per batch in femtojoules: the sum of its lines';
COMMENT ON COLUMN internal.placement.latency_half_width IS 'Half-width of the 80 % interval of the logarithm of the latency';
COMMENT ON COLUMN internal.placement.interval_half_width IS 'Half-width of the 80 % interval of the logarithm of the period';
COMMENT ON COLUMN internal.placement.energy_half_width IS 'Half-width of the 80 % interval of the logarithm of the energy';
COMMENT ON COLUMN internal.placement.formula_version IS 'Digest of the formulas of the classes of its devices';
COMMENT ON COLUMN internal.placement.package_version IS 'joulemap version that evaluated it';
COMMENT ON COLUMN internal.placement.created_at IS 'Time of storing, UTC';
COMMENT ON COLUMN internal.placement.content_digest IS 'Digests of this row and of its lines, eight digits each; checked by `joulemap db check`';

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
COMMENT ON TABLE internal.placement_line IS 'Ledger lines of a placement, per batch';
COMMENT ON COLUMN internal.placement_line.placement_id IS 'placement';
COMMENT ON COLUMN internal.placement_line.line_index IS 'Order in the ledger';
COMMENT ON COLUMN internal.placement_line.device IS 'Device of the box; for a copy, the sender';
COMMENT ON COLUMN internal.placement_line.subgraph_index IS 'Subgraph of the workload; null if the line belongs to none';
COMMENT ON COLUMN internal.placement_line.component IS 'Component that acts';
COMMENT ON COLUMN internal.placement_line.action IS 'Name of the action';
COMMENT ON COLUMN internal.placement_line.per IS 'Unit of the count';
COMMENT ON COLUMN internal.placement_line.action_count IS 'Count of the action';
COMMENT ON COLUMN internal.placement_line.energy_per_action_fj IS 'Energy of one count at the highest voltage, in femtojoules';
COMMENT ON COLUMN internal.placement_line.energy_fj IS 'Energy at the voltage of the run, in femtojoules';
COMMENT ON COLUMN internal.placement_line.basis IS 'Kind of origin of the energy per action';
COMMENT ON COLUMN internal.placement_line.source IS 'Document, measurement or arithmetic';

CREATE TABLE internal.hardware_level (
    hardware_digest VARCHAR NOT NULL,
    level_index INTEGER NOT NULL CHECK (level_index >= 0),
    level VARCHAR NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('cache', 'scratchpad')),
    per VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_level IS 'On-chip memory levels; their numbers are hardware_fact memory.LEVEL.capacity and .bandwidth';
COMMENT ON COLUMN internal.hardware_level.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_level.level_index IS 'Order from the units outwards';
COMMENT ON COLUMN internal.hardware_level.level IS 'Name, e.g. l2';
COMMENT ON COLUMN internal.hardware_level.kind IS 'cache, which keeps recently used data, or scratchpad, which the program fills';
COMMENT ON COLUMN internal.hardware_level.per IS 'Component that has one instance of it';

CREATE TABLE internal.hardware_power_mode (
    hardware_digest VARCHAR NOT NULL,
    mode_index INTEGER NOT NULL CHECK (mode_index >= 0),
    power_mode VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_power_mode IS 'Named power modes; their numbers are hardware_fact power_mode.NAME.clock, .tdp ...';
COMMENT ON COLUMN internal.hardware_power_mode.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_power_mode.mode_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_power_mode.power_mode IS 'Name, e.g. 15W';

CREATE TABLE internal.hardware_link (
    hardware_digest VARCHAR NOT NULL,
    link_index INTEGER NOT NULL CHECK (link_index >= 0),
    link VARCHAR NOT NULL,
    generation VARCHAR NOT NULL,
    connects VARCHAR NOT NULL CHECK (connects IN ('device', 'host', 'guest')),
    topology VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_link IS 'Links to other devices and to the host; their numbers are hardware_fact link.NAME.bandwidth, .link_count ...';
COMMENT ON COLUMN internal.hardware_link.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_link.link_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_link.link IS 'Name, e.g. nvlink';
COMMENT ON COLUMN internal.hardware_link.generation IS 'Generation as its vendor or standard counts; empty if there is only one';
COMMENT ON COLUMN internal.hardware_link.connects IS 'device (others of the same kind), host (the attached processor) or guest (a port of a processor)';
COMMENT ON COLUMN internal.hardware_link.topology IS 'Topology: pair, bridge (sold apart), mesh, ring, torus_2d, torus_3d or switch; empty for a host or if unknown';

CREATE TABLE internal.hardware_load (
    hardware_digest VARCHAR NOT NULL,
    load_index INTEGER NOT NULL CHECK (load_index >= 0),
    load VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL,
    covers VARCHAR NOT NULL,
    tracer_version VARCHAR NOT NULL
);
COMMENT ON TABLE internal.hardware_load IS 'Workloads with a measured board power, which is hardware_fact load.NAME.power';
COMMENT ON COLUMN internal.hardware_load.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_load.load_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_load.load IS 'Name';
COMMENT ON COLUMN internal.hardware_load.model IS 'Built-in model of the workload';
COMMENT ON COLUMN internal.hardware_load.precision IS 'Precision of the workload';
COMMENT ON COLUMN internal.hardware_load.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.hardware_load.runtime IS 'Execution mode';
COMMENT ON COLUMN internal.hardware_load.covers IS 'Boundary of the measured power: board, or system, an upper bound for the board';
COMMENT ON COLUMN internal.hardware_load.tracer_version IS 'Digest of the code that traced the workload';

CREATE TABLE internal.hardware_operator (
    hardware_digest VARCHAR NOT NULL,
    operator_index INTEGER NOT NULL CHECK (operator_index >= 0),
    operator VARCHAR NOT NULL,
    compiler VARCHAR NOT NULL,
    cut VARCHAR NOT NULL CHECK (cut IN ('first', 'stretch', 'each')),
    host VARCHAR NOT NULL,
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> '')
);
COMMENT ON TABLE internal.hardware_operator IS 'Operators that the compiler of a hardware supports; no rows if it supports all';
COMMENT ON COLUMN internal.hardware_operator.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN internal.hardware_operator.operator_index IS 'Order in the description';
COMMENT ON COLUMN internal.hardware_operator.operator IS 'A kind, an operation, or an operation of one kind, such as conv.conv2d';
COMMENT ON COLUMN internal.hardware_operator.compiler IS 'Name of the compiler';
COMMENT ON COLUMN internal.hardware_operator.cut IS 'Supported part of a model: first (up to the first unsupported operator), stretch (one contiguous part) or each (every supported operator)';
COMMENT ON COLUMN internal.hardware_operator.host IS 'Default hardware for the other operators; empty if there is none';
COMMENT ON COLUMN internal.hardware_operator.basis IS 'Kind of origin of the list';
COMMENT ON COLUMN internal.hardware_operator.source IS 'Document of the list';

CREATE TABLE internal.calibration (
    calibration_digest VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    hardware VARCHAR NOT NULL,
    hardware_digest VARCHAR NOT NULL,
    origin VARCHAR NOT NULL,
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
COMMENT ON TABLE internal.calibration IS 'Calibrations that runs used; rows never change, because another fit has another digest';
COMMENT ON COLUMN internal.calibration.calibration_digest IS 'Digest of the bytes of its file';
COMMENT ON COLUMN internal.calibration.name IS 'Name of its file';
COMMENT ON COLUMN internal.calibration.hardware IS 'Catalogue id of the calibrated hardware';
COMMENT ON COLUMN internal.calibration.hardware_digest IS 'hardware_version that it was fitted to, in the default power mode without this calibration';
COMMENT ON COLUMN internal.calibration.origin IS 'shipped, its file, or given by a program';
COMMENT ON COLUMN internal.calibration.formula_version IS 'Digest of the formulas at the time of the fit';
COMMENT ON COLUMN internal.calibration.data_digest IS 'Digest of the measurements of the fit';
COMMENT ON COLUMN internal.calibration.hardware_generation IS 'Class, microarchitecture and process node of hardware that may inherit it';
COMMENT ON COLUMN internal.calibration.measurement_count IS 'Number of measurements of the fit';
COMMENT ON COLUMN internal.calibration.latency_count IS 'Measurements with a latency';
COMMENT ON COLUMN internal.calibration.energy_count IS 'Measurements with an energy';
COMMENT ON COLUMN internal.calibration.latency_credibility_fraction IS 'Weight of the data against class defaults in coefficients of time';
COMMENT ON COLUMN internal.calibration.energy_credibility_fraction IS 'Weight of the data against class defaults in energy scales and static power';
COMMENT ON COLUMN internal.calibration.runtimes IS 'Runtimes of the measurements';
COMMENT ON COLUMN internal.calibration.precisions IS 'Precisions of the measurements';
COMMENT ON COLUMN internal.calibration.families IS 'Families of the measured models';
COMMENT ON COLUMN internal.calibration.content_digest IS 'Digests of this row and of its coefficients and errors, eight digits each; checked by `joulemap db check`';

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
COMMENT ON TABLE internal.calibration_coefficient IS 'Coefficients that a calibration changed';
COMMENT ON COLUMN internal.calibration_coefficient.calibration_digest IS 'calibration';
COMMENT ON COLUMN internal.calibration_coefficient.coefficient_index IS 'Order in the file';
COMMENT ON COLUMN internal.calibration_coefficient.part IS 'time (a coefficient), energy (a factor on energies per action) or static (static power)';
COMMENT ON COLUMN internal.calibration_coefficient.name IS 'Name of the coefficient or energy scale';
COMMENT ON COLUMN internal.calibration_coefficient.default_value IS 'Value without the calibration';
COMMENT ON COLUMN internal.calibration_coefficient.value IS 'Value with the calibration';
COMMENT ON COLUMN internal.calibration_coefficient.unit IS 'SI unit; 1 for a factor or share';
COMMENT ON COLUMN internal.calibration_coefficient.data_weight_fraction IS 'Share of the value''s information that comes from the measurements';
COMMENT ON COLUMN internal.calibration_coefficient.is_determined IS 'Whether that share suffices for the basis measured';
COMMENT ON COLUMN internal.calibration_coefficient.meaning IS 'Description';

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
COMMENT ON TABLE internal.calibration_error IS 'Errors of predictions for the measurements of a calibration';
COMMENT ON COLUMN internal.calibration_error.calibration_digest IS 'calibration';
COMMENT ON COLUMN internal.calibration_error.error_index IS 'Order in the file';
COMMENT ON COLUMN internal.calibration_error.quantity IS 'latency or energy';
COMMENT ON COLUMN internal.calibration_error.split IS 'uncalibrated (class defaults), fitted (rows of the fit) or cross_validated (each family predicted by a fit to the others)';
COMMENT ON COLUMN internal.calibration_error.runtime IS 'Runtime of the rows; null for all';
COMMENT ON COLUMN internal.calibration_error.precision IS 'Precision of the rows; null for all';
COMMENT ON COLUMN internal.calibration_error.batch IS 'Batch of the rows; null for all';
COMMENT ON COLUMN internal.calibration_error.family IS 'Model family of the rows; null for all';
COMMENT ON COLUMN internal.calibration_error.measurement_count IS 'Number of measurements';
COMMENT ON COLUMN internal.calibration_error.mean_error_fraction IS 'Mean absolute relative error';
COMMENT ON COLUMN internal.calibration_error.median_error_fraction IS 'Median absolute relative error';
COMMENT ON COLUMN internal.calibration_error.worst_error_fraction IS 'Signed relative error of the worst row; positive if the prediction is too high';
COMMENT ON COLUMN internal.calibration_error.rank_correlation IS 'Spearman''s rank correlation; null for fewer than three rows';

CREATE TABLE internal.operator_measurement (
    hardware VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    matmul_precision VARCHAR NOT NULL DEFAULT 'default' CHECK (matmul_precision IN ('default', 'high', 'highest')),
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL,
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
COMMENT ON TABLE internal.operator_measurement IS 'Measured device times of operators inside models; replaced when the catalogue changes';
COMMENT ON COLUMN internal.operator_measurement.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.operator_measurement.model IS 'Model name';
COMMENT ON COLUMN internal.operator_measurement.precision IS 'Measured precision';
COMMENT ON COLUMN internal.operator_measurement.matmul_precision IS 'Setting of the library for GEMMs and convolutions at fp32; default at other precisions';
COMMENT ON COLUMN internal.operator_measurement.batch IS 'Samples in one input';
COMMENT ON COLUMN internal.operator_measurement.runtime IS 'Execution mode';
COMMENT ON COLUMN internal.operator_measurement.operation IS 'Operation as in operator_signatures; empty for kernels that match no traced operator';
COMMENT ON COLUMN internal.operator_measurement.shapes IS 'Shapes as in operator_signatures; without an operation, the shapes of the kernels'' arguments';
COMMENT ON COLUMN internal.operator_measurement.operator_count IS 'Traced operators with this operation and these shapes';
COMMENT ON COLUMN internal.operator_measurement.kernels IS 'ATen operators that run them, in alphabetical order';
COMMENT ON COLUMN internal.operator_measurement.call_count IS 'Calls of these kernels in one pass of the model';
COMMENT ON COLUMN internal.operator_measurement.device_time_s IS 'Device time of all calls, without the gaps between kernels';
COMMENT ON COLUMN internal.operator_measurement.is_overlapping IS 'Whether its kernels overlap in a graph and take less time there, as in grouped convolutions';
COMMENT ON COLUMN internal.operator_measurement.source IS 'Origin of the row';
COMMENT ON COLUMN internal.operator_measurement.conditions IS 'Conditions of the measurement';
COMMENT ON COLUMN internal.operator_measurement.seen IS 'Coefficients that were chosen with this row in view; empty if there are none';

CREATE TABLE internal.cost_assumption (
    assumption_index INTEGER NOT NULL CHECK (assumption_index >= 0),
    assumption VARCHAR PRIMARY KEY,
    value DOUBLE NOT NULL CHECK (value >= 0),
    unit VARCHAR NOT NULL,
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL
);
COMMENT ON TABLE internal.cost_assumption IS 'Assumptions about the use of a chip in a price per inference, from the current catalogue';
COMMENT ON COLUMN internal.cost_assumption.assumption_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.cost_assumption.assumption IS 'utilization, lifetime, hours, pue, electricity or host';
COMMENT ON COLUMN internal.cost_assumption.value IS 'Value in this unit';
COMMENT ON COLUMN internal.cost_assumption.unit IS 'Unit: 1, year, h/year or USD/kWh';
COMMENT ON COLUMN internal.cost_assumption.basis IS 'Kind of origin of the number';
COMMENT ON COLUMN internal.cost_assumption.source IS 'Document or arithmetic';
COMMENT ON COLUMN internal.cost_assumption.note IS 'Condition or limit of the number';

CREATE TABLE internal.grid_region (
    region_index INTEGER NOT NULL CHECK (region_index >= 0),
    region VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    year INTEGER NOT NULL,
    gco2_per_kwh DOUBLE NOT NULL CHECK (gco2_per_kwh >= 0),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL
);
COMMENT ON TABLE internal.grid_region IS 'Carbon intensity of electricity by grid, from the current catalogue';
COMMENT ON COLUMN internal.grid_region.region_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.grid_region.region IS 'Id: world, eu, or a country''s two letters';
COMMENT ON COLUMN internal.grid_region.name IS 'Display name';
COMMENT ON COLUMN internal.grid_region.year IS 'Year of the value';
COMMENT ON COLUMN internal.grid_region.gco2_per_kwh IS 'Yearly average in grams of CO2 equivalent per kilowatt-hour';
COMMENT ON COLUMN internal.grid_region.basis IS 'Kind of origin of the number';
COMMENT ON COLUMN internal.grid_region.source IS 'Document or arithmetic';
COMMENT ON COLUMN internal.grid_region.note IS 'Condition or limit of the number';

CREATE TABLE internal.offer (
    offer_index INTEGER PRIMARY KEY CHECK (offer_index >= 0),
    hardware VARCHAR NOT NULL,
    way VARCHAR NOT NULL CHECK (way IN ('rented', 'bought')),
    kind VARCHAR NOT NULL CHECK (kind <> ''),
    seller VARCHAR NOT NULL CHECK (seller <> ''),
    date VARCHAR NOT NULL,
    usd DOUBLE NOT NULL CHECK (usd > 0),
    unit VARCHAR NOT NULL CHECK (unit IN ('USD/h', 'USD')),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL
);
COMMENT ON TABLE internal.offer IS 'Sellers'' prices of one device, from the current catalogue';
COMMENT ON COLUMN internal.offer.offer_index IS 'Order in the catalogue; the first offer of a hardware and way represents it';
COMMENT ON COLUMN internal.offer.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.offer.way IS 'rented or bought';
COMMENT ON COLUMN internal.offer.kind IS 'Kind of seller or contract: hyperscaler, cloud, marketplace, reserved, spot, list or retail';
COMMENT ON COLUMN internal.offer.seller IS 'Name of the seller';
COMMENT ON COLUMN internal.offer.date IS 'Day, month or year of the price; empty if not stated';
COMMENT ON COLUMN internal.offer.usd IS 'Price of one device, per hour if rented';
COMMENT ON COLUMN internal.offer.unit IS 'USD/h or USD';
COMMENT ON COLUMN internal.offer.basis IS 'Kind of origin of the number';
COMMENT ON COLUMN internal.offer.source IS 'Document or page';
COMMENT ON COLUMN internal.offer.note IS 'Content of the offer, and how the price was computed';

CREATE TABLE internal.seller_price (
    price_index INTEGER NOT NULL CHECK (price_index >= 0),
    hardware VARCHAR NOT NULL,
    way VARCHAR NOT NULL CHECK (way IN ('rented', 'bought')),
    kind VARCHAR NOT NULL CHECK (kind <> ''),
    kind_index INTEGER NOT NULL CHECK (kind_index >= 0),
    usd DOUBLE NOT NULL CHECK (usd > 0),
    half_width DOUBLE NOT NULL CHECK (half_width >= 0),
    seller VARCHAR NOT NULL,
    price_text VARCHAR NOT NULL,
    offer_count INTEGER NOT NULL CHECK (offer_count > 0),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    reference_usd DOUBLE NOT NULL CHECK (reference_usd > 0),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL,
    PRIMARY KEY (hardware, kind)
);
COMMENT ON TABLE internal.seller_price IS 'Price of each hardware by kind of seller: the median over sellers of their newest offers';
COMMENT ON COLUMN internal.seller_price.price_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.seller_price.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.seller_price.way IS 'rented or bought';
COMMENT ON COLUMN internal.seller_price.kind IS 'Kind of seller or contract, as in offer';
COMMENT ON COLUMN internal.seller_price.kind_index IS 'Rank of the kind; the lowest is used if two kinds have equal prices';
COMMENT ON COLUMN internal.seller_price.usd IS 'Price of one device, per hour if rented';
COMMENT ON COLUMN internal.seller_price.half_width IS 'Of the 80 % interval of the natural logarithm of the price, over sellers';
COMMENT ON COLUMN internal.seller_price.seller IS 'Name of the seller if there is only one, whose prices share an error; else kind and hardware';
COMMENT ON COLUMN internal.seller_price.price_text IS 'Seller and date as displayed';
COMMENT ON COLUMN internal.seller_price.offer_count IS 'Number of sellers';
COMMENT ON COLUMN internal.seller_price.basis IS 'Least certain basis of the offers';
COMMENT ON COLUMN internal.seller_price.reference_usd IS 'Price in the hardware file, which the offers replace';
COMMENT ON COLUMN internal.seller_price.source IS 'Sources of the offers';
COMMENT ON COLUMN internal.seller_price.note IS 'Content of the offers, or the price of each seller';

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
COMMENT ON TABLE internal.metric IS 'Metrics by which runs are compared, ranked and chosen';
COMMENT ON COLUMN internal.metric.metric_index IS 'Order in the program';
COMMENT ON COLUMN internal.metric.name IS 'Id';
COMMENT ON COLUMN internal.metric.label IS 'Display name';
COMMENT ON COLUMN internal.metric.unit IS 'SI unit, or USD';
COMMENT ON COLUMN internal.metric.column_name IS 'Column of runs with its values, or of the table of a choice';
COMMENT ON COLUMN internal.metric.per IS 'Denominator of a value: batch, inference, second, chip or million inferences';
COMMENT ON COLUMN internal.metric.is_higher_better IS 'Whether higher values are better';
COMMENT ON COLUMN internal.metric.missing IS 'Reason for null values; empty if there are none';
COMMENT ON COLUMN internal.metric.latency_power IS 'Exponent of the latency in the metric';
COMMENT ON COLUMN internal.metric.energy_power IS 'Exponent of the energy in the metric';

CREATE TABLE internal.table_digest (
    table_name VARCHAR PRIMARY KEY,
    content_digest VARCHAR NOT NULL
);
COMMENT ON TABLE internal.table_digest IS 'Digests of tables that are replaced with the catalogue, and of the sets of runs, workloads, hardware versions, calibrations, measurements and estimates';
COMMENT ON COLUMN internal.table_digest.table_name IS 'Table';
COMMENT ON COLUMN internal.table_digest.content_digest IS 'Digest of all rows of the table, or of their digests; checked by `joulemap db check`';

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
COMMENT ON COLUMN internal.error_scale.least_ops_per_s IS 'Smallest peak of the measured boards; 0 if it applies to every size';
COMMENT ON COLUMN internal.error_scale.most_ops_per_s IS 'Largest peak of the measured boards; infinity if it applies to every size';
COMMENT ON TABLE internal.error_scale IS 'Errors of predictions by group of measurements, from the current catalogue; empty texts stand for all';
COMMENT ON COLUMN internal.error_scale.scale_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.error_scale.quantity IS 'latency or power';
COMMENT ON COLUMN internal.error_scale.level IS 'Fineness of the group: 0 all, 1 work, 2 class, 3 work in a class, then runtime, precision and hardware';
COMMENT ON COLUMN internal.error_scale.work IS 'model, decode, experts, training or decomposition, or the kind of a single operator';
COMMENT ON COLUMN internal.error_scale.architecture IS 'Architecture class';
COMMENT ON COLUMN internal.error_scale.runtime IS 'Execution mode';
COMMENT ON COLUMN internal.error_scale.precision IS 'Precision of the runs';
COMMENT ON COLUMN internal.error_scale.hardware IS 'Catalogue id';
COMMENT ON COLUMN internal.error_scale.half_width IS 'Half-width of the 80 % interval of ln(measured / predicted)';
COMMENT ON COLUMN internal.error_scale.group_count IS 'Number of pairs of model family and board with measurements';
COMMENT ON COLUMN internal.error_scale.row_count IS 'Number of measurements';

CREATE TABLE internal.error_share (
    quantity VARCHAR NOT NULL CHECK (quantity IN ('latency', 'power')),
    factor VARCHAR NOT NULL CHECK (factor IN ('class', 'board', 'model', 'board_model', 'case', 'own')),
    share DOUBLE NOT NULL CHECK (share BETWEEN 0 AND 1),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    PRIMARY KEY (quantity, factor)
);
COMMENT ON TABLE internal.error_share IS 'Shares of an error''s variance that similar runs have in common, from the current catalogue';
COMMENT ON COLUMN internal.error_share.quantity IS 'latency or power; the error of an energy is the sum of both';
COMMENT ON COLUMN internal.error_share.factor IS 'Common property: class, board, model (in a class), board_model, or case (model, precision, runtime and batch in a class); own for the share of a single run';
COMMENT ON COLUMN internal.error_share.share IS 'Share of the variance of ln(measured / predicted); the shares sum to 1';
COMMENT ON COLUMN internal.error_share.basis IS 'Kind of origin of the number';
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
COMMENT ON TABLE internal.serving_scale IS 'Errors of predictions for served models by group of measurements, from the current catalogue; empty texts stand for all';
COMMENT ON COLUMN internal.serving_scale.scale_index IS 'Order in the catalogue';
COMMENT ON COLUMN internal.serving_scale.quantity IS 'Quantity of the scale: time, for all times and rates, or power';
COMMENT ON COLUMN internal.serving_scale.level IS 'Fineness of the group: 0 all, 1 vendor, 2 engine on the vendor''s boards';
COMMENT ON COLUMN internal.serving_scale.vendor IS 'Vendor of the hardware';
COMMENT ON COLUMN internal.serving_scale.engine IS 'Name of the engine, without its release';
COMMENT ON COLUMN internal.serving_scale.half_width IS 'Half-width of the 80 % interval of ln(measured / predicted) of the measured servers';
COMMENT ON COLUMN internal.serving_scale.group_count IS 'Number of pairs of source and board with measurements';
COMMENT ON COLUMN internal.serving_scale.row_count IS 'Number of measurements';
COMMENT ON COLUMN internal.serving_scale.chips IS 'Measured chips of an engine on a vendor''s boards, separated by spaces';

CREATE TABLE internal.power_floor (
    architecture VARCHAR NOT NULL,
    evidence VARCHAR NOT NULL CHECK (evidence IN ('own', 'class')),
    most_ops_per_s DOUBLE NOT NULL CHECK (most_ops_per_s > 0),
    half_width DOUBLE NOT NULL CHECK (half_width > 0),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    PRIMARY KEY (architecture, evidence, most_ops_per_s)
);
COMMENT ON TABLE internal.power_floor IS 'Minimum half-width of a power by class and evidence, from the current catalogue';
COMMENT ON COLUMN internal.power_floor.architecture IS 'Architecture class; empty for all classes without a floor of their own';
COMMENT ON COLUMN internal.power_floor.evidence IS 'own (measurements of the hardware itself) or class (of other hardware of its class)';
COMMENT ON COLUMN internal.power_floor.most_ops_per_s IS 'Largest peak to which it applies; of several, the smallest counts';
COMMENT ON COLUMN internal.power_floor.half_width IS 'Half-width of the 80 % interval of ln(measured / predicted)';
COMMENT ON COLUMN internal.power_floor.basis IS 'Kind of origin of the number';
COMMENT ON COLUMN internal.power_floor.source IS 'Measurements or assumption';

CREATE TABLE internal.basis_spread (
    number_basis VARCHAR PRIMARY KEY,
    half_width DOUBLE NOT NULL CHECK (half_width > 0),
    own_price_half_width DOUBLE NOT NULL CHECK (own_price_half_width >= 0),
    own_number_half_width DOUBLE NOT NULL CHECK (own_number_half_width >= 0),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'split', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> '')
);
COMMENT ON TABLE internal.basis_spread IS 'Common uncertainty of numbers with one basis, from the current catalogue';
COMMENT ON COLUMN internal.basis_spread.number_basis IS 'Basis of the numbers';
COMMENT ON COLUMN internal.basis_spread.half_width IS 'Half-width of the 80 % interval of the natural logarithm of energies per action';
COMMENT ON COLUMN internal.basis_spread.own_price_half_width IS 'Part of the half-width of a hardware''s own energy per action that errors of scored hardware do not include';
COMMENT ON COLUMN internal.basis_spread.own_number_half_width IS 'The same part for a peak, a bandwidth or a clock';
COMMENT ON COLUMN internal.basis_spread.basis IS 'Kind of origin of the half-widths';
COMMENT ON COLUMN internal.basis_spread.source IS 'Measurements or assumption';

CREATE TABLE internal.interval_version (
    version VARCHAR PRIMARY KEY CHECK (version <> '')
);
COMMENT ON TABLE internal.interval_version IS 'Version of the intervals of all stored runs';
COMMENT ON COLUMN internal.interval_version.version IS 'Digest of their formulas and error scales';
