"""S-LSTMs whose every weight counts."""

import torch

from sentence_state import SentenceStateLSTM


def encoder_with_random_weights(input_size=3, hidden_size=2, dtype=torch.float64, scale=1.0, **options):
    """Every parameter random, biases and the initial state too: zeros would hide mistakes."""
    encoder = SentenceStateLSTM(input_size, hidden_size, dtype=dtype, **options)
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return encoder
