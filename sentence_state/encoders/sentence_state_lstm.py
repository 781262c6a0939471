"""Section 3.2: the sentence-state LSTM."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from ..ops.equations import Weights, length_mask
from ..ops.halting import halting_recurrence
from ..ops.int8 import Int8Matrix
from ..ops.recurrence import BACKENDS, MEMORY, Step, drop, initial_state, input_term, mean_word, recurrence, step
from ..ops.released import released_initial_state, released_recurrence, released_sentence, released_step
from .encoding import Encoder, Encoding, check_choice, check_size, read_input

GATES = ("paper", "sharp")
VARIANTS = ("paper", "released")
INITIALISATIONS = ("glorot", "orthogonal")


class Trace(NamedTuple):
    """Every state and gate of T steps. B sentences, N words, k sentence nodes, w words of window on each side."""

    words: Tensor  # (T+1, B, N, H)        h^0 .. h^T
    cells: Tensor  # (T+1, B, N, H)        c^0 .. c^T
    sentence: Tensor  # (T+1, B, k, H)     g^0 .. g^T
    sentence_cells: Tensor  # (T+1, B, k, H)
    word_gates: Tensor  # (T, B, N, 2w+2+k, H)  i, neighbours from left to right, sentence nodes: they sum to one
    word_output_gates: Tensor  # (T, B, N, H)
    sentence_word_gates: Tensor  # (T, B, N, k, H)  what each node took from each word; sums to one with the next
    sentence_node_gates: Tensor  # (T, B, k, k, H)  what each node (third) took from each node (second)
    sentence_output_gates: Tensor  # (T, B, k, H)


class SentenceStateLSTM(Encoder):
    """S-LSTM: a state for every word and one for the sentence, all updated at once in `num_steps` steps (Eq. 2, Eq. 3).

    window: words that a word reads on each side in one step.
    sentence_nodes: 1 in the paper; more nodes read one another and the first is the output; with 0 the sentence vector
        is the mean of the words.
    gates: "paper" (sigmoid, then softmax) or "sharp" (softmax alone: a gate can open and close fully).
    step_dropout: dropout on the h and g that the next step reads, with one mask for all steps.
    initialisation: of every H x H block of W, V and the sentence's matrices, "glorot" or "orthogonal".
    halting: in evaluation a sentence takes no further step when its state g changes by no more than this (the root of
        the mean square of its H changes); 0, the default: all steps. An attribute that may be set at any time.
    variant: "paper", or "released" for what the authors' code computes (needs input_size == hidden_size, one node).
    memory: what training keeps for the backward pass, which computes the rest again: "low", "normal" or "high" (on a
        GPU; elsewhere as "normal"); "auto": "high" while it keeps at most a quarter of the card's memory, else
        "normal".
    backend: "triton" (fused kernels: NVIDIA's cards since Ampere, window 1, one node), "reference" (plain PyTorch), or
        "auto".
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_steps: int = 9,
        window: int = 1,
        sentence_nodes: int = 1,
        *,
        gates: str = "paper",
        step_dropout: float = 0.0,
        halting: float = 0.0,
        variant: str = "paper",
        initialisation: str = "glorot",
        bias: bool = True,
        memory: str = "auto",
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_steps", num_steps)):
            check_size(name, size)
        check_size("window", window)
        check_size("sentence_nodes", sentence_nodes, least=0)
        check_choice("gates", gates, GATES)
        check_choice("variant", variant, VARIANTS)
        check_choice("initialisation", initialisation, INITIALISATIONS)
        check_choice("memory", memory, MEMORY)
        check_choice("backend", backend, BACKENDS)
        if not 0 <= step_dropout < 1:
            raise ValueError(f"step_dropout must lie in [0, 1), got {step_dropout}")
        if variant == "released" and (input_size != hidden_size or sentence_nodes != 1):
            raise ValueError(
                'variant="released" needs input_size == hidden_size and sentence_nodes == 1, '
                f"got {input_size}, {hidden_size} and {sentence_nodes}"
            )
        self.input_size, self.hidden_size, self.output_size = input_size, hidden_size, hidden_size
        self.num_steps, self.window, self.sentence_nodes = num_steps, window, sentence_nodes
        self.gates, self.step_dropout, self.variant, self.backend = gates, step_dropout, variant, backend
        self.initialisation, self.memory = initialisation, memory
        self.halting = check_halting(halting, variant, sentence_nodes)

        H, k = hidden_size, sentence_nodes
        read, blocks = (3, 6) if variant == "released" else (2 * window + 1, 2 * window + 4 + k)

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*shape, device=device, dtype=dtype))

        self.W, self.U, self.b = parameter(blocks * H, read * H), parameter(blocks * H, input_size), None
        self.V = self.sentence_W = self.sentence_U = self.sentence_U_f = self.sentence_b = None
        if k:
            self.V, self.sentence_W = parameter(blocks * H, k * H), parameter(k * (k + 2) * H, k * H)
            self.sentence_U, self.sentence_U_f = parameter(k * (k + 1) * H, H), parameter(k * H, H)
        if bias:
            self.b = parameter(blocks * H)
            self.sentence_b = parameter(k * (k + 2) * H) if k else None
        self.h_0 = self.c_0 = None
        if variant == "paper":
            self.h_0, self.c_0 = parameter(H), parameter(H)
        self._int8: Weights | None = None
        self.register_load_state_dict_post_hook(forget_int8)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot's uniform range for every block of H rows, or orthogonal square blocks; biases and the initial state
        start at zero."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 1:
                nn.init.zeros_(parameter)
            else:
                columns = self.input_size if name == "U" else self.hidden_size
                bound = (6 / (self.hidden_size + columns)) ** 0.5
                nn.init.uniform_(parameter, -bound, bound)
                if self.initialisation == "orthogonal" and name != "U":
                    for block in blocks_of(parameter, self.hidden_size):
                        nn.init.orthogonal_(block)

    def extra_repr(self) -> str:
        named = "num_steps window sentence_nodes gates step_dropout halting variant initialisation memory backend"
        options = ", ".join(f"{name}={getattr(self, name)!r}" for name in named.split())
        return f"{self.input_size}, {self.hidden_size}, {options}{'' if self.b is not None else ', bias=False'}"

    def forward(
        self,
        x: Tensor | PackedSequence,
        lengths: Tensor | Sequence[int] | None = None,
        *,
        mask: Tensor | None = None,
        num_steps: int | None = None,
        need_words: bool = True,
        need_sentence: bool = True,
    ) -> Encoding:
        """Encode a batch of sentences.

        x: (B, N, D), a `PackedSequence`, or one sentence (N, D); of any floating-point type, in which the states are.
        lengths: (B,) words in each sentence; `mask`: (B, N), True at a word, instead. Neither: no padding.
        num_steps: other than the constructor's, for this call.
        need_words, need_sentence: a field that is not needed is None, and its last update is saved.
        Returns `Encoding`: words (B, N, H), zero at padding, and sentence (B, H), in the order of the input.
        """
        if num_steps is not None:
            check_size("num_steps", num_steps)
        x, lengths, unbatched = read_input(x, lengths, mask, self.input_size)
        if self.halting and not self.training:
            words, sentence, _ = self.run_until(x, lengths, self.halting, num_steps)
        else:
            words, sentence = self.run(x, lengths, num_steps, need_words, need_sentence)[:2]
        if unbatched:
            words, sentence = words.squeeze(0), sentence.squeeze(0)
        return Encoding(words if need_words else cast(Tensor, None), sentence if need_sentence else cast(Tensor, None))

    def run(
        self,
        x: Tensor,
        lengths: Tensor | None,
        num_steps: int | None = None,
        need_words: bool = True,
        need_sentence: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`forward` without checks: h (B, N, H), the sentence vector (B, H) and the cell behind it (B, H)."""
        num_steps = num_steps or self.num_steps
        x, weights = self._prepare(x)
        dropout = self._step_dropout_masks(x) if self.training and self.step_dropout else None
        with without_autocast(x):
            if self.variant == "released":
                mask, weights = mask_of(lengths, x), weights.to(x.dtype)
                state = released_recurrence(x, mask, weights, num_steps, self.gates, self.window, dropout)
                return state.h, released_sentence(state, mask), state.c_g[:, 0]
            need_words = need_words or self.sentence_nodes == 0
            needs = (need_words, need_sentence)
            state = recurrence(x, lengths, weights, num_steps, self.gates, dropout, *needs, self.backend, self.memory)
            if self.sentence_nodes == 0:
                mask = mask_of(lengths, x)
                return state.h, mean_word(state.h, mask), mean_word(state.c, mask)
            return state.h, state.g[:, 0], state.c_g[:, 0]

    def run_until(
        self, x: Tensor, lengths: Tensor | None, halting: float, num_steps: int | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`run` with steps until the sentence state no longer changes: h (B, N, H), g (B, H) and the number of steps
        that each sentence took (B,). Always in plain PyTorch, without a gradient."""
        check_halting(halting, self.variant, self.sentence_nodes)
        x, weights = self._prepare(x)
        weights = weights.to(x.dtype)
        mask = mask_of(lengths, x)
        with torch.no_grad(), without_autocast(x):
            state, steps = halting_recurrence(x, mask, weights, num_steps or self.num_steps, self.gates, halting)
        return state.h, state.g[:, 0], steps

    def encode_steps(self, x: Tensor, lengths: Tensor | Sequence[int] | None = None) -> Encoding:
        """Words (B, N, H) after the last step, and the first sentence node after every step, (B, T, H): for attention
        over the steps. Step dropout as in `forward`; always in plain PyTorch."""
        if self.variant != "paper" or not self.sentence_nodes:
            raise ValueError('encode_steps needs variant="paper" and a sentence node')
        x, lengths, _ = read_input(x, lengths, None, self.input_size)
        x, weights = self._prepare(x)
        weights = weights.to(x.dtype)
        mask = mask_of(lengths, x)
        dropout = self._step_dropout_masks(x) if self.training and self.step_dropout else None
        with without_autocast(x):
            x_term, state, reached = input_term(x, weights), initial_state(x, mask, weights), []
            for t in range(self.num_steps):
                read = drop(state, dropout) if t else state
                state = step(read, x_term, mask, weights, self.gates, first=t == 0).state
                reached.append(state.g[:, 0])
        return Encoding(state.h, torch.stack(reached, dim=1))

    def quantize(self) -> None:
        """From now on, until other weights are loaded, predict with int8 products of what the weights are now: float32
        on a CPU, in evaluation."""
        if self.variant != "paper" or self.W.device.type != "cpu" or self.W.dtype != torch.float32:
            raise ValueError('int8 is for variant="paper" in float32 on a CPU')
        self._int8 = None
        weights = self._prepare(self.W)[1]
        self._int8 = Weights._make(
            Int8Matrix(weight) if weight.dim() == 2 and weight.numel() else weight for weight in weights
        )

    def _prepare(self, x: Tensor) -> tuple[Tensor, Weights]:
        """x in the type that autocast asks for, and the weights in their own, or as `quantize` left them."""
        if self._int8 is not None and not self.training:
            return x, self._int8
        if not x.is_meta and torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        H, k = self.hidden_size, self.sentence_nodes
        rows = len(self.W)

        def or_zeros(parameter: Tensor | None, *shape: int) -> Tensor:
            return self.W.new_zeros(shape) if parameter is None else parameter

        return x, Weights(
            W=self.W,
            U=self.U,
            V=or_zeros(self.V, rows, 0),
            b=or_zeros(self.b, rows),
            sentence_W=or_zeros(self.sentence_W, 0, 0),
            sentence_U=or_zeros(self.sentence_U, 0, H),
            sentence_U_f=or_zeros(self.sentence_U_f, 0, H),
            sentence_b=or_zeros(self.sentence_b, k * (k + 2) * H),
            h_0=or_zeros(self.h_0, H),
            c_0=or_zeros(self.c_0, H),
        )

    def _step_dropout_masks(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """One mask for h and one for g, kept through all steps and scaled by 1 / (1 - p)."""
        keep = 1 - self.step_dropout
        h = x.new_empty(*x.shape[:2], self.hidden_size).bernoulli_(keep)
        g = x.new_empty(x.shape[0], self.sentence_nodes, self.hidden_size).bernoulli_(keep)
        return h / keep, g / keep

    def trace(
        self,
        x: Tensor,
        lengths: Tensor | Sequence[int] | None = None,
        *,
        mask: Tensor | None = None,
        num_steps: int | None = None,
    ) -> Trace:
        """Every step's states and gates, for pictures and for attention over steps. The batch dimension is always
        there; step dropout is not applied."""
        if num_steps is not None:
            check_size("num_steps", num_steps)
        x, lengths, _ = read_input(x, lengths, mask, self.input_size)
        x, weights = self._prepare(x)
        weights = weights.to(x.dtype)
        words = mask_of(lengths, x)
        released = self.variant == "released"
        with without_autocast(x):
            x_term = input_term(x, weights)
            states = [released_initial_state(x, words) if released else initial_state(x, words, weights)]
            states[0] = states[0]._replace(
                g=states[0].g.expand(len(x), -1, -1), c_g=states[0].c_g.expand(len(x), -1, -1)
            )
            reached: list[Step] = []
            for t in range(num_steps or self.num_steps):
                if released:
                    reached.append(released_step(states[-1], x, x_term, words, weights, self.gates, self.window))
                else:
                    reached.append(step(states[-1], x_term, words, weights, self.gates, first=t == 0))
                states.append(reached[-1].state)
        h, c, g, c_g = (torch.stack(tensors) for tensors in zip(*states, strict=True))
        mixed, o, _ = (
            torch.stack(tensors) for tensors in zip(*(s.word_gates for s in reached if s.word_gates), strict=True)
        )
        if self.sentence_nodes:
            of_sentence = zip(*(s.sentence_gates for s in reached if s.sentence_gates), strict=True)
            from_words, from_nodes, o_g = (torch.stack(tensors) for tensors in of_sentence)
        else:
            from_words, from_nodes, o_g = (
                h.new_zeros(len(reached), *h.shape[1:3], 0, h.shape[3]),
                g[1:, :, :, None].expand(-1, -1, -1, 0, -1),
                g[1:],
            )
        return Trace(h, c, g, c_g, mixed, o, from_words, from_nodes, o_g)


def forget_int8(encoder: SentenceStateLSTM, keys: object) -> None:
    """Rounded copies are of the weights that were there before."""
    encoder._int8 = None


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """The recurrence has one type throughout; the meta device, which holds shapes only, knows no autocast."""
    return nullcontext() if x.is_meta else torch.autocast(x.device.type, enabled=False)


def mask_of(lengths: Tensor | None, x: Tensor) -> Tensor | None:
    """(B, N), True at a word; None without padding."""
    return None if lengths is None else length_mask(lengths, x.shape[1])


def check_halting(halting: float, variant: str, sentence_nodes: int) -> float:
    if not halting >= 0:
        raise ValueError(f"halting must be 0 (off) or a threshold above it, got {halting}")
    if halting and (variant != "paper" or not sentence_nodes):
        raise ValueError('halting watches the sentence state: it needs variant="paper" and a sentence node')
    return halting


def blocks_of(matrix: Tensor, size: int) -> list[Tensor]:
    """The square blocks of a matrix, as views."""
    return [block for rows in matrix.detach().split(size) for block in rows.split(size, dim=1)]
