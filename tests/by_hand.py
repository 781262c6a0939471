"""The oracle: the paper's equations one scalar at a time, in Python floats and loops. No tensors, no shortcuts."""

from __future__ import annotations

import itertools
import math


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def softmax(values: list[float]) -> list[float]:
    exponentials = [math.exp(value) for value in values]
    total = sum(exponentials)
    return [value / total for value in exponentials]


def dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


# ---- Eq. 1: the baseline's cell -----------------------------------------------------------------


def lstm(words: list[list[float]], W: dict, U: dict, b: dict, h: list[float], c: list[float]) -> list[list[float]]:
    """Eq. 1 from left to right: n words of D numbers -> n states of H. For each gate of "ifou" a list of H: rows of W
    (D numbers) and U (H numbers), one number of b. h and c: the initial states."""
    states = []
    for x in words:
        new_h, new_c = [], []
        for unit in range(len(h)):
            total = {gate: dot(W[gate][unit], x) + dot(U[gate][unit], h) + b[gate][unit] for gate in "ifou"}
            i, f = softmax([sigmoid(total["i"]), sigmoid(total["f"])])
            o, u = sigmoid(total["o"]), math.tanh(total["u"])
            new_c.append(c[unit] * f + u * i)
            new_h.append(o * math.tanh(new_c[unit]))
        h, c = new_h, new_c
        states.append(h)
    return states


def bilstm(words: list[list[float]], layers: list[tuple[dict, dict]]) -> tuple[list[list[float]], list[float]]:
    """Section 3.1, stacked: for each layer the arguments of `lstm` forward and backward -> n vectors of 2H, and g."""
    for forward_weights, backward_weights in layers:
        forward = lstm(words, **forward_weights)
        backward = lstm(words[::-1], **backward_weights)[::-1]
        words = [left + right for left, right in zip(forward, backward, strict=True)]
    return words, forward[-1] + backward[0]


# ---- Eq. 2 and Eq. 3: S-LSTM --------------------------------------------------------------------


def normalised(values: list[float], kind: str) -> list[float]:
    """Both kinds of gates: "paper" squashes each before the softmax, "sharp" does not."""
    return softmax([sigmoid(value) for value in values] if kind == "paper" else values)


def sentence_state_lstm(
    x: list[list[float]], p: dict[str, list], num_steps: int, window: int, nodes: int, kind: str
) -> tuple[list[list[float]], list[list[float]]]:
    """One sentence x[word][d] -> h[word][unit], g[node][unit]. p holds the module's parameters as nested lists."""
    n, H = len(x), len(p["h_0"])
    h = [list(p["h_0"]) for _ in range(n)]
    c = [list(p["c_0"]) for _ in range(n)]
    g = [list(p["h_0"]) for _ in range(nodes)]
    c_g = [list(p["c_0"]) for _ in range(nodes)]
    zero = [0.0] * H
    around = range(-window, window + 1)
    for _ in range(num_steps):
        h_new = [[0.0] * H for _ in range(n)]
        c_new = [[0.0] * H for _ in range(n)]
        all_nodes = [value for node in g for value in node]
        for i in range(n):
            xi = [value for d in around for value in (h[i + d] if 0 <= i + d < n else zero)]
            for unit in range(H):
                row = [unit + block * H for block in range(2 * window + nodes + 4)]
                gates = [dot(p["W"][r], xi) + dot(p["U"][r], x[i]) + p["b"][r] for r in row]
                if nodes:
                    gates = [gate + dot(p["V"][r], all_nodes) for gate, r in zip(gates, row, strict=True)]
                *mixed, o, u = gates
                share = normalised(mixed, kind)
                cell = share[0] * math.tanh(u)
                for place, d in enumerate(around):
                    cell += share[1 + place] * (c[i + d][unit] if 0 <= i + d < n else 0.0)
                for j in range(nodes):
                    cell += share[2 + 2 * window + j] * c_g[j][unit]
                c_new[i][unit] = cell
                h_new[i][unit] = sigmoid(o) * math.tanh(cell)
        g_new = [[0.0] * H for _ in range(nodes)]
        c_g_new = [[0.0] * H for _ in range(nodes)]
        mean = [sum(h[i][unit] for i in range(n)) / n for unit in range(H)]
        for j in range(nodes):
            for unit in range(H):

                def from_nodes(block: int, j: int = j, unit: int = unit, read: list[float] = all_nodes) -> float:
                    row = (j * (nodes + 2) + block) * H + unit
                    return dot(p["sentence_W"][row], read) + p["sentence_b"][row]

                def from_mean(block: int, j: int = j, unit: int = unit, read: list[float] = mean) -> float:
                    return dot(p["sentence_U"][(j * (nodes + 1) + block) * H + unit], read)

                f_words = [from_nodes(nodes + 1) + dot(p["sentence_U_f"][j * H + unit], h[i]) for i in range(n)]
                f_nodes = [from_nodes(m) + from_mean(m) for m in range(nodes)]
                share = normalised(f_words + f_nodes, kind)
                cell = sum(share[i] * c[i][unit] for i in range(n))
                cell += sum(share[n + m] * c_g[m][unit] for m in range(nodes))
                c_g_new[j][unit] = cell
                g_new[j][unit] = sigmoid(from_nodes(nodes) + from_mean(nodes)) * math.tanh(cell)
        h, c, g, c_g = h_new, c_new, g_new, c_g_new
    return h, g


def released_s_lstm(
    x: list[list[float]], p: dict[str, list], num_steps: int, window: int, kind: str
) -> tuple[list[list[float]], list[float]]:
    """What the authors' released classifier computes for one sentence: h[word][unit] and the mean of all h and g."""
    n, H = len(x), len(x[0])
    h, c = [list(word) for word in x], [list(word) for word in x]
    g = [sum(word[unit] for word in x) / n for unit in range(H)]
    c_g = list(g)

    def side(state: list[list[float]], places: range) -> list[float]:
        return [sum(state[place][unit] for place in places if 0 <= place < n) for unit in range(H)]

    for _ in range(num_steps):
        h_new = [[0.0] * H for _ in range(n)]
        c_new = [[0.0] * H for _ in range(n)]
        for i in range(n):
            left, right = range(i - window, i), range(i + 1, i + window + 1)
            xi = side(h, left) + h[i] + side(h, right)
            for unit in range(H):
                rows = [unit + block * H for block in range(6)]
                *mixed, o = (dot(p["W"][r], xi) + dot(p["U"][r], x[i]) + dot(p["V"][r], g) + p["b"][r] for r in rows)
                i_share, l_share, f_share, r_share, s_share = normalised(mixed, kind)
                cell = i_share * x[i][unit] + l_share * side(c, left)[unit] + f_share * c[i][unit]
                cell += r_share * side(c, right)[unit] + s_share * c_g[unit]
                c_new[i][unit] = cell
                h_new[i][unit] = sigmoid(o) * math.tanh(cell)
        mean = [sum(h[i][unit] for i in range(n)) / n for unit in range(H)]
        g_new, c_g_new = [0.0] * H, [0.0] * H
        for unit in range(H):
            from_g = [dot(p["sentence_W"][b * H + unit], g) + p["sentence_b"][b * H + unit] for b in range(3)]
            f_g = from_g[0] + dot(p["sentence_U"][unit], mean)
            o = from_g[1] + dot(p["sentence_U"][H + unit], mean)
            f_words = [from_g[2] + dot(p["sentence_U_f"][unit], h[i]) for i in range(n)]
            share = normalised([*f_words, f_g], kind)
            cell = sum(share[i] * c[i][unit] for i in range(n)) + share[n] * c_g[unit]
            c_g_new[unit] = cell
            g_new[unit] = sigmoid(o) * math.tanh(cell)
        h, c, g, c_g = h_new, c_new, g_new, c_g_new
    return h, [(sum(h[i][unit] for i in range(n)) + g[unit]) / (n + 1) for unit in range(H)]


# ---- Section 3.3: external attention ------------------------------------------------------------


def attention(words: list[list[float]], W: list[list[float]], b: list[float], u: list[float]) -> list[float]:
    """alpha: the weight of each of n words of H numbers. W: H rows of H numbers."""
    energies = []
    for h in words:
        epsilon = [math.tanh(dot(row, h) + bias) for row, bias in zip(W, b, strict=True)]
        energies.append(dot(u, epsilon))
    return softmax(energies)


def weighted_sum(weights: list[float], words: list[list[float]]) -> list[float]:
    return [sum(weight * h[unit] for weight, h in zip(weights, words, strict=True)) for unit in range(len(words[0]))]


# ---- Section 3.3: external CRF ------------------------------------------------------------------


Tags = tuple[int, ...]


def edge_score(tags: Tags, words: list[list[float]], W: list, b: list, start_W: list, start_b: list) -> float:
    """log prod psi as the paper has it. W[previous][label]: H numbers, b[previous][label]: one; start_*[label]."""
    score = dot(start_W[tags[0]], words[0]) + start_b[tags[0]]
    for i in range(1, len(tags)):
        score += dot(W[tags[i - 1]][tags[i]], words[i]) + b[tags[i - 1]][tags[i]]
    return score


def static_score(
    tags: Tags, words: list[list[float]], W: list, b: list, transition: list, start: list, end: list
) -> float:
    """The common form. W[label]: H numbers; transition[previous][label], b[label], start[label], end[label]: one."""
    score = start[tags[0]] + end[tags[-1]]
    score += sum(dot(W[tag], h) + b[tag] for tag, h in zip(tags, words, strict=True))
    return score + sum(transition[previous][tag] for previous, tag in itertools.pairwise(tags))


def is_allowed(tags: Tags, start: list[bool], transition: list[list[bool]], end: list[bool]) -> bool:
    return (
        start[tags[0]]
        and end[tags[-1]]
        and all(transition[previous][tag] for previous, tag in itertools.pairwise(tags))
    )


def log_sum(scores: dict[Tags, float]) -> float:
    """The log-partition: every tag sequence has its score."""
    return math.log(sum(math.exp(score) for score in scores.values()))


def label_marginals(scores: dict[Tags, float], num_labels: int) -> list[list[float]]:
    """P(y_i): the share of the sequences with that label at that word."""
    total = sum(math.exp(score) for score in scores.values())
    labels = [[0.0] * num_labels for _ in next(iter(scores))]
    for tags, score in scores.items():
        for i, tag in enumerate(tags):
            labels[i][tag] += math.exp(score) / total
    return labels


def pair_marginals(scores: dict[Tags, float], num_labels: int) -> list[list[list[float]]]:
    """P(y_{i-1}, y_i) for each word but the first."""
    total = sum(math.exp(score) for score in scores.values())
    pairs = [[[0.0] * num_labels for _ in range(num_labels)] for _ in range(len(next(iter(scores))) - 1)]
    for tags, score in scores.items():
        for i, (previous, tag) in enumerate(itertools.pairwise(tags)):
            pairs[i][previous][tag] += math.exp(score) / total
    return pairs


def n_best(scores: dict[Tags, float], n: int) -> list[tuple[Tags, float]]:
    return sorted(scores.items(), key=lambda item: item[1], reverse=True)[:n]
