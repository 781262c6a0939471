"""Inputs and weights for the fused recurrence."""

import torch

from sentence_state import SentenceStateLSTM

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random_case(B, N, D, H, num_steps, gates, ragged, drop):
    torch.manual_seed(B + 10 * N + H)
    encoder = SentenceStateLSTM(D, H, num_steps, gates=gates, dtype=torch.float64, device=DEVICE)
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.4 if parameter.dim() == 1 else 0.7 / H**0.5)
        parameter.data = parameter.data.bfloat16().double()
    _, weights = encoder._prepare(torch.empty(1))
    x = torch.randn(B, N, D, device=DEVICE).bfloat16().double()
    lengths = None
    if ragged:
        lengths = torch.randint(1, N + 1, (B,), device=DEVICE)
        lengths[0] = N
        x[torch.arange(N, device=DEVICE) >= lengths[:, None]] = 0
    dropout = None
    if drop:
        shapes = [(B, N, H), (B, 1, H)]
        dropout = tuple(torch.empty(s, dtype=torch.float64, device=DEVICE).bernoulli_(0.75) / 0.75 for s in shapes)
    return x, lengths, weights, num_steps, gates, dropout
