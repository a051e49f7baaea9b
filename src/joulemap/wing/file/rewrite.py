"""Rewrites that replace a chain of nodes by the single operator of a framework.

Each rule takes a node of a chain and returns the node that replaces the chain. A chain is replaced only where no other
node reads its inner values. The rules make counts equal those of a trace of the same model: a GEMM and its bias, a
GELU, a SiLU, norms, attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from joulemap.system import Reading
from joulemap.wing.file.graph import Program
from joulemap.wing.file.value import Node, Value, list_present

SCALED: Final = ("Mul", "Div")

PASSED: Final = ("Identity", "Dropout", "Cast")
"""Operators inside a chain that rewrites ignore, because they do not change values in inference."""

ATTENTION: Final = "joined attention"
"""Operator name of an attention that was joined from several operators of a file."""

VALID: Final = 1
"""TFLite's padding mode `VALID`, which adds no elements."""

ROOT_HALF: Final = 0.7071
TOLERANCE: Final = 1e-3


@attrs.define
class Links:
    """Node that makes each value of a graph, and nodes that read it, by id() of the value."""

    makers: dict[int, Node]
    readers: dict[int, list[Node]]
    kept: set[int]
    """id() of each value that the graph returns."""
    places: dict[int, int]
    """id() of a node -> its index in the graph."""

    @classmethod
    def of(cls, program: Program) -> Links:
        """Return the makers and readers of the values in a graph."""
        makers = {id(one): node for node in program.nodes for one in node.outputs}
        readers: dict[int, list[Node]] = {}
        for node in program.nodes:
            for one in node.inputs:
                if one is not None:
                    readers.setdefault(id(one), []).append(node)
        places = {id(one): index for index, one in enumerate(program.nodes)}
        return cls(makers, readers, {id(one) for one in program.outputs}, places)

    def maker(self, value: Value | None, *ops: str) -> Node | None:
        """Return the node that makes a value, if its operator is one of `ops` or `ops` is empty; else None."""
        node = self.makers.get(id(value))
        return node if node is not None and (not ops or node.op in ops) else None

    def is_inner(self, value: Value) -> bool:
        """Return True if exactly one node reads a value, and the graph does not return it."""
        return len(self.readers.get(id(value), ())) == 1 and id(value) not in self.kept

    def is_closed(self, joined: Node, chain: Sequence[Node]) -> bool:
        """Return True if no other node reads the inner values of a chain; outputs of the joined node are no inner
        values.
        """
        inside = {id(one) for one in chain}
        made = {id(one) for one in joined.outputs}
        hidden = [value for one in chain for value in one.outputs if id(value) not in made]
        return not any(
            id(value) in self.kept or any(id(one) not in inside for one in self.readers.get(id(value), []))
            for value in hidden
        )

    def reader(self, value: Value, *ops: str) -> Node | None:
        """Return the only node that reads a value, if its operator is one of `ops`; else None."""
        readers = self.readers.get(id(value), [])
        return readers[0] if self.is_inner(value) and (not ops or readers[0].op in ops) else None


Match = tuple[Node, Sequence[Node]] | None
"""Node that replaces a chain, and the nodes of the chain; None if a rule does not apply."""

Rule = Callable[[Links, Node], Match]


def join_chains(program: Program) -> Program:
    """Return the graph with chains of nodes joined, one rule after the other."""
    with Reading(program.name) as reading:
        return _join_all(program, reading)


def _join_all(program: Program, reading: Reading) -> Program:
    links = Links.of(program)
    for rule in RULES:
        joined = _join(program, links, rule, reading)
        if joined is not program:
            program, links = joined, Links.of(joined)
    return program


def _join(program: Program, links: Links, rule: Rule, reading: Reading) -> Program:
    """Return the graph with the chains that a rule finds joined, or the same graph if it finds none."""
    gone: set[int] = set()
    put: dict[int, Node] = {}
    for node in program.nodes:
        if id(node) in gone:
            continue
        reading.part = node
        match = rule(links, node)
        if match is None or any(id(one) in gone for one in match[1]) or not links.is_closed(*match):
            continue
        joined, chain = match
        gone |= {id(one) for one in chain}
        put[max(links.places[id(one)] for one in chain)] = joined
    if not gone:
        return program
    nodes = []
    for index, node in enumerate(program.nodes):
        if index in put:
            nodes.append(put[index])
        elif id(node) not in gone:
            nodes.append(node)
    return attrs.evolve(program, nodes=nodes)


def _scalar(value: Value | None) -> float | None:
    """Return a known value of one element as a number; None for any other value."""
    if value is None or value.known is None or value.known.size != 1:
        return None
    return float(value.known.reshape(-1)[0])


def _other(node: Node, value: Value) -> Value | None:
    """Return the input of a two-input node that is not `value`."""
    return next((one for one in node.inputs if one is not value), None)


def _is_near(value: float | None, expected: float) -> bool:
    return value is not None and abs(value - expected) <= TOLERANCE * abs(expected)


def _replace(op: str, last: Node, inputs: Sequence[Value | None], chain: Sequence[Node]) -> Match:
    """Return the match of a chain with a node that has the name and the outputs of its last node."""
    return Node(op, last.name, inputs, last.outputs, {}), chain


def join_bias(links: Links, node: Node) -> Match:
    """Join a GEMM with a weight and the addition of its bias."""
    if node.op != "MatMul" or not node.given(1).is_weight or len(node.given(1).shape) != 2:
        return None
    weight = node.given(1)
    added = links.reader(node.outputs[0], "Add")
    bias = _other(added, node.outputs[0]) if added is not None else None
    inputs: list[Value | None] = [node.inputs[0], weight]
    if added is not None and bias is not None and bias.is_weight and bias.shape == (weight.shape[1],):
        return Node("Linear", node.name, [*inputs, bias], added.outputs, {}), (node, added)
    return _replace("Linear", node, inputs, (node,))


def join_gelu(links: Links, node: Node) -> Match:
    """Join the nodes of a GELU, x/2 (1 + erf(x/√2)), with factors in any order."""
    if node.op != "Erf":
        return None
    scaled = links.maker(node.given(0), *SCALED)
    if scaled is None or not links.is_inner(scaled.outputs[0]):
        return None
    x = scaled.given(0)
    factor = _scalar(scaled.value(1))
    if not _is_near(factor, 1.0 / ROOT_HALF if scaled.op == "Div" else ROOT_HALF):
        return None
    added = links.reader(node.outputs[0], "Add")
    if added is None or (product := links.reader(added.outputs[0], "Mul")) is None:
        return None
    chain = [scaled, node, added, product]
    other = _other(product, added.outputs[0])
    if other is x:
        half = links.reader(product.outputs[0], "Mul")
        if half is None or not _is_near(_scalar(_other(half, product.outputs[0])), 0.5):
            return None
        return _replace("Gelu", half, [x], [*chain, half])
    halved = links.maker(other, *SCALED)
    if halved is not None and x in halved.inputs and links.is_inner(halved.outputs[0]):
        return _replace("Gelu", product, [x], [*chain, halved])
    half = links.reader(product.outputs[0], "Mul") if _is_near(_scalar(other), 0.5) else None
    if half is not None and _other(half, product.outputs[0]) is x:
        return _replace("Gelu", half, [x], [*chain, half])
    return None


def join_tanh_gelu(links: Links, node: Node) -> Match:
    """Join the nodes of an approximate GELU, x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    if node.op != "Tanh":
        return None
    scaled = links.maker(node.given(0), "Mul")
    inner = (
        next((one for one in map(links.maker, scaled.inputs) if one is not None and one.op == "Add"), None)
        if scaled
        else None
    )
    if scaled is None or inner is None:
        return None
    cubed = next((one for one in map(links.maker, inner.inputs) if one is not None and one.op == "Mul"), None)
    x = next((one for one in inner.inputs if one is not None and (cubed is None or one is not cubed.outputs[0])), None)
    if cubed is None or x is None:
        return None
    powers = [one for one in map(links.maker, cubed.inputs) if one is not None and one.op in ("Pow", "Mul")]
    chain = [scaled, inner, cubed, *powers, node]
    for one in powers:
        if one.op == "Mul":
            chain += [two for two in map(links.maker, one.inputs) if two is not None and two.op == "Mul"]
    if not any(x in one.inputs for one in chain):
        return None
    added = links.reader(node.outputs[0], "Add")
    if added is None or (product := links.reader(added.outputs[0], "Mul")) is None:
        return None
    chain += [added, product]
    other = _other(product, added.outputs[0])
    halved = links.maker(other, *SCALED)
    if halved is not None and x in halved.inputs:
        return _replace("Gelu", product, [x], [*chain, halved])
    last = links.reader(product.outputs[0], "Mul")
    if last is None:
        return None
    return _replace("Gelu", last, [x], [*chain, last])


def join_gate(links: Links, node: Node) -> Match:
    """Join x sigmoid(x) to a SiLU, x hardsigmoid(x) to a hardswish, x tanh(softplus(x)) to a Mish."""
    if node.op not in ("Sigmoid", "HardSigmoid", "Tanh"):
        return None
    chain, x = [node], node.given(0)
    if node.op == "Tanh":
        softened = links.maker(x, "Softplus")
        if softened is None or not links.is_inner(x):
            return None
        chain, x = [softened, node], softened.given(0)
    product = links.reader(node.outputs[0], "Mul")
    if product is None or _other(product, node.outputs[0]) is not x:
        return None
    name = {"Sigmoid": "Silu", "HardSigmoid": "HardSwish", "Tanh": "Mish"}[node.op]
    return _replace(name, product, [x], [*chain, product])


def join_norm(links: Links, node: Node) -> Match:
    """Join (x - mean) / √(variance + ε) · weight + bias to a layer norm, or, without a mean, to an RMS norm."""
    if node.op != "Sqrt":
        return None
    added = links.maker(node.given(0), "Add")
    mean = (
        next((one for one in map(links.maker, added.inputs) if one and one.op == "ReduceMean"), None) if added else None
    )
    squared = links.maker(mean.given(0), "Pow", "Mul") if mean else None
    if added is None or mean is None or squared is None:
        return None
    chain = [squared, mean, added, node]
    source = squared.given(0)
    centred = links.maker(source, "Sub")
    centre = links.maker(centred.value(1), "ReduceMean") if centred else None
    x = (
        centred.given(0)
        if centred is not None and centre is not None and centre.given(0) is centred.given(0)
        else source
    )
    is_layer = x is not source
    if is_layer and centred is not None and centre is not None:
        chain += [centred, centre]
    turned = links.reader(node.outputs[0], "Div", "Reciprocal")
    if turned is None:
        return None
    chain.append(turned)
    if turned.op == "Reciprocal" or turned.value(0) is not source:
        divided = links.reader(turned.outputs[0], "Mul")
        if divided is None or source not in divided.inputs:
            return None
        chain.append(divided)
    else:
        divided = turned
    rank = len(mean.outputs[0].shape)
    axis = sum(a != b for a, b in zip(x.shape, mean.outputs[0].shape, strict=False)) if rank == len(x.shape) else 1
    if axis != 1:
        return None
    last = divided
    weights: list[Value] = []
    width = x.shape[-1]
    for op in ("Mul", "Add") if is_layer else ("Mul",):
        following = _read_through(links, last.outputs[0], op)
        if not following:
            break
        weight = next((one for one in following[-1].inputs if one is not None and one.is_weight), None)
        if weight is None or weight.count != width:
            break
        chain += following
        last = following[-1]
        weights.append(weight)
    name = "LayerNormalization" if is_layer else "RMSNormalization"
    return Node(name, last.name, [x, *weights], last.outputs, {"axis": -1}), chain


def _read_through(links: Links, value: Value, op: str) -> list[Node]:
    """Return the nodes that lead from a value through casts to a reader with the operator `op`; empty without one."""
    nodes: list[Node] = []
    for _ in range(3):
        following = links.reader(value, op, *PASSED)
        if following is None:
            return []
        nodes.append(following)
        if following.op == op:
            return nodes
        value = following.outputs[0]
    return []


def join_attention(links: Links, node: Node) -> Match:
    """Join the nodes of an attention: scores, scale and mask, softmax, and weighted sum of values."""
    if node.op != "Softmax" or int(node.attributes.get("axis", -1)) not in (-1, len(node.given(0).shape) - 1):
        return None
    chain, mask, value = [node], None, node.given(0)
    for _ in range(6):
        made = links.maker(value, "MatMul", "Add", "Where", *SCALED, *PASSED)
        if made is None or not links.is_inner(value):
            return None
        chain.append(made)
        if made.op == "MatMul":
            break
        if made.op in SCALED and _scalar(made.value(1)) is None:
            return None
        if made.op == "Add":
            inputs = list_present(made.inputs)
            value = max(inputs, key=lambda one: links.maker(one) is not None and one.shape == made.outputs[0].shape)
            mask = _other(made, value)
        elif made.op == "Where":
            value = next(
                (one for one in made.inputs[1:] if one is not None and links.maker(one) is not None), made.given(1)
            )
            mask = made.value(0)
        else:
            value = made.given(0)
    scores = chain[-1]
    if scores.op != "MatMul" or len(scores.outputs[0].shape) < 3:
        return None
    value = node.outputs[0]
    total: Node | None = None
    for _ in range(4):
        readers = links.readers.get(id(value), [])
        checked = [one for one in readers if one.op == "IsNaN"]
        chosen = next((one for one in readers if one.op == "Where"), None)
        if checked and chosen is not None and len(readers) == 2:
            chain += [checked[0], chosen]
            value = chosen.outputs[0]
            continue
        following = links.reader(value, "MatMul", *PASSED)
        if following is None:
            return None
        chain.append(following)
        if following.op == "MatMul":
            total = following
            break
        value = following.outputs[0]
    if total is None or total.given(0) is not value:
        return None
    query, before = _unscaled(links, scores.given(0))
    chain += before
    key, before = _unscaled(links, scores.given(1))
    chain += before
    turned = links.maker(key, "Transpose")
    transposed = False
    if turned is not None and links.is_inner(key):
        order = list(turned.attributes.get("perm", ()))
        rank = len(order)
        if order == [*range(rank - 2), rank - 1, rank - 2]:
            chain.append(turned)
            key, transposed = turned.given(0), True
        elif rank == 4 and order == [0, 2, 3, 1]:
            transposed = False
    operands: list[Value | None] = [query, key, total.value(1), mask]
    return Node(ATTENTION, total.name, operands, total.outputs, {"keys_last": not transposed}), chain


def _unscaled(links: Links, value: Value) -> tuple[Value, list[Node]]:
    """Return the value before a multiplication or division by a number, and the nodes of that scaling."""
    made = links.maker(value, *SCALED)
    if made is None or not links.is_inner(value) or _scalar(made.value(1)) is None:
        return value, []
    return made.given(0), [made]


def join_quantized(links: Links, node: Node) -> Match:
    """Remove a pair of quantize and dequantize nodes; later operators read the numbers before it."""
    if node.op != "DequantizeLinear":
        return None
    made = links.maker(node.given(0), "QuantizeLinear")
    if made is None:
        return None
    chain = [made, node] if links.is_inner(made.outputs[0]) else [node]
    return _replace("Identity", node, made.inputs[:1], chain)


def join_padding(links: Links, node: Node) -> Match:
    """Join the zero padding of an image with channels last, and the convolution that reads the padded image."""
    if node.op not in ("CONV_2D", "DEPTHWISE_CONV_2D") or node.attributes.get("padding") != VALID:
        return None
    made = links.maker(node.given(0), "Pad")
    zeros = made.value(1) if made is not None and len(made.inputs) == 2 else None
    if made is None or zeros is None or zeros.known is None or zeros.shape != (4, 2):
        return None
    batch, *spatial, channels = zeros.known.tolist()
    if any((*batch, *channels)):
        return None
    attributes = {**node.attributes, "pads": [before for before, _ in spatial]}
    return Node(node.op, node.name, [made.given(0), *node.inputs[1:]], node.outputs, attributes), (made, node)


RULES: Final[tuple[Rule, ...]] = (
    join_quantized,
    join_norm,
    join_gelu,
    join_tanh_gelu,
    join_gate,
    join_attention,
    join_bias,
    join_padding,
)
