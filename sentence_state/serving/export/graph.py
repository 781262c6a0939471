"""An ONNX graph in the making: numpy arrays become its constants, operators of values become its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

OPSET = 17
FLOAT, INT64 = "FLOAT", "INT64"
MOST = np.iinfo(np.int64).max  # as the end of a slice: to the end


@dataclass(frozen=True)
class Value:
    """A tensor that the graph will hold."""

    graph: Graph
    name: str

    def __add__(self, other: Operand) -> Value:
        return self.graph("Add", self, other)

    def __sub__(self, other: Operand) -> Value:
        return self.graph("Sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self.graph("Sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.graph("Mul", self, other)

    def __truediv__(self, other: Operand) -> Value:
        return self.graph("Div", self, other)

    def __matmul__(self, other: Operand) -> Value:
        return self.graph("MatMul", self, other)


Operand = Value | np.ndarray | np.generic | float


@dataclass
class Graph:
    """Call it with the name of an ONNX operator, its inputs and its attributes: op("Softmax", x, axis=1)."""

    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: list[Any] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)
    known: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def __call__(self, kind: str, *inputs: Operand | None, **attributes: Any) -> Value:
        return self.several(kind, 1, *inputs, **attributes)[0]

    def several(self, kind: str, outputs: int, *inputs: Operand | None, **attributes: Any) -> list[Value]:
        """An operator with more than one output."""
        from onnx import helper

        names = ["" if value is None else self.value(value).name for value in inputs]
        results = [f"{kind.lower()}_{next(self.numbers)}" for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, names, results, **attributes))
        return [Value(self, name) for name in results]

    def value(self, operand: Operand) -> Value:
        if isinstance(operand, Value):
            return Value(self, operand.name)
        array = np.asarray(operand, None if isinstance(operand, np.ndarray | np.generic) else np.float32)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.known:
            self.known[key] = f"constant_{next(self.numbers)}"
            self.constants[self.known[key]] = array
        return Value(self, self.known[key])

    def input(self, name: str, kind: str, shape: Sequence[str | int] | None) -> Value:
        from onnx import TensorProto, helper

        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.DataType.Value(kind), shape))
        return Value(self, name)

    # ---- what reads better with a name --------------------------------------------------------------

    def reshape(self, x: Value, *shape: int) -> Value:
        """0 keeps a dimension, -1 is what is left."""
        return self("Reshape", x, np.array(shape))

    def unsqueeze(self, x: Value, axis: int) -> Value:
        return self("Unsqueeze", x, np.array([axis]))

    def squeeze(self, x: Value, axis: int) -> Value:
        return self("Squeeze", x, np.array([axis]))

    def slice(self, x: Value, start: int, end: int, axis: int) -> Value:
        return self("Slice", x, np.array([start]), np.array([end]), np.array([axis]))

    def split(self, x: Value, sizes: Sequence[int], axis: int) -> list[Value]:
        sizes = list(sizes)
        return [x] if len(sizes) == 1 else self.several("Split", len(sizes), x, np.array(sizes), axis=axis)

    def sum(self, x: Value, axis: int) -> Value:
        return self("ReduceSum", x, np.array([axis]), keepdims=0)

    def size(self, x: Value, axis: int) -> Value:
        """(1,): the length of a dimension."""
        return self("Gather", self("Shape", x), np.array([axis]))

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=axis)

    def length_mask(self, lengths: Value, like: Value) -> Value:
        """(B,) lengths -> (B, N) booleans, True at a word, for N positions as `like` (B, N, ...) has."""
        position = self("Range", np.array(0), self.squeeze(self.size(like, 1), 0), np.array(1))
        return self("Less", position, self.unsqueeze(lengths, 1))

    def scan(
        self,
        step: Callable[..., tuple[list[Value], list[Value]]],
        states: Sequence[Value],
        inputs: Sequence[Value],
        kinds: Sequence[str],
        reverse: bool = False,
    ) -> tuple[list[Value], list[Value]]:
        """step(graph, states, a slice of each input) -> (states, outputs), along axis 1; last states, outputs stacked.

        kinds: FLOAT, INT64 or BOOL of every state and input. The step may read values from outside.
        """
        from onnx import helper

        body = Graph(numbers=self.numbers)
        values = [body.input(f"step_{next(self.numbers)}", kind, None) for kind in kinds]
        after, outputs = step(body, values[: len(states)], values[len(states) :])
        results = list(after)
        for value in outputs:  # a body has no output twice
            results.append(body("Identity", value) if value in results else value)
        found = self.several(
            "Scan",
            len(results),
            *states,
            *inputs,
            body=body.proto("body", [helper.make_empty_tensor_value_info(value.name) for value in results]),
            num_scan_inputs=len(inputs),
            scan_input_axes=[1] * len(inputs),
            scan_output_axes=[1] * len(outputs),
            scan_input_directions=[int(reverse)] * len(inputs),
            scan_output_directions=[int(reverse)] * len(outputs),
        )
        return found[: len(states)], found[len(states) :]

    def finish(self, name: str, outputs: Mapping[str, tuple[Value, str, Sequence[str | int]]]) -> onnx.GraphProto:
        """The whole graph, its outputs with the names, kinds and shapes given."""
        from onnx import TensorProto, helper

        for key, (value, _, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value.name], [key]))
        results = [
            helper.make_tensor_value_info(key, TensorProto.DataType.Value(kind), shape)
            for key, (_, kind, shape) in outputs.items()
        ]
        return self.proto(name, results)

    def proto(self, name: str, results: Sequence[Any]) -> onnx.GraphProto:
        from onnx import helper, numpy_helper

        constants = [numpy_helper.from_array(array, key) for key, array in self.constants.items()]
        return helper.make_graph(self.nodes, name, self.inputs, results, constants)
