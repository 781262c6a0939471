"""S-LSTM compiled, exported, traced, in 16 bits and under torch.func."""

import io
from functools import partial

import pytest
import torch

from sentence_state import SentenceStateLSTM

from .random_weights import encoder_with_random_weights


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("inductor", {}),  # builds C++: slow, so only the default
        ("aot_eager", {"gates": "sharp"}),
        ("aot_eager", {"window": 2, "sentence_nodes": 2}),
        ("aot_eager", {"sentence_nodes": 0}),
        ("aot_eager", {"variant": "released"}),
    ],
)
def test_it_compiles_whole_with_dynamic_sizes_and_agrees(backend, options):
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(8, 8, num_steps=3, **options)
    torch._dynamo.reset()
    compiled = torch.compile(encoder, fullgraph=True, dynamic=True, backend=backend)
    for B, N in [(3, 5), (2, 9), (4, 2)]:
        x, lengths = torch.randn(B, N, 8), torch.randint(1, N + 1, (B,))
        for ours, theirs in zip(compiled(x, lengths), encoder(x, lengths), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    x = torch.randn(3, 7, 8)
    compiled(x).sentence.sum().backward()
    ours = {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}
    encoder.zero_grad()
    encoder(x).sentence.sum().backward()
    for name, parameter in encoder.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"gates": "sharp", "window": 2, "sentence_nodes": 2}, {"sentence_nodes": 0}])
def test_it_exports_with_dynamic_batch_and_length_and_agrees(options):
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(8, 8, num_steps=3, **options).eval()
    batch, length = torch.export.Dim("batch", min=1, max=512), torch.export.Dim("length", min=1, max=512)
    exported = torch.export.export(
        encoder,
        (torch.randn(3, 5, 8), torch.tensor([5, 2, 1])),
        dynamic_shapes={"x": {0: batch, 1: length}, "lengths": {0: batch}},
    ).module()
    for B, N in [(3, 5), (1, 1), (7, 12)]:
        x, lengths = torch.randn(B, N, 8), torch.randint(1, N + 1, (B,))
        for ours, theirs in zip(exported(x, lengths), encoder(x, lengths), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"sentence_nodes": 0}])
def test_an_exported_encoder_is_the_same_from_a_file(options):
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(8, 8, num_steps=3, **options).eval()
    x, lengths, file = torch.randn(3, 5, 8), torch.tensor([5, 2, 1]), io.BytesIO()
    torch.export.save(torch.export.export(encoder, (x, lengths)), file)
    file.seek(0)
    loaded = torch.export.load(file).module()(x, lengths)
    assert type(loaded) is type(encoder(x, lengths))
    for ours, theirs in zip(loaded, encoder(x, lengths), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_bfloat16_autocast_stays_near_float32(device):
    torch.manual_seed(0)
    encoder = SentenceStateLSTM(32, 64, device=device)
    x, lengths = torch.randn(4, 9, 32, device=device), torch.tensor([9, 1, 5, 2])
    with torch.autocast(device, dtype=torch.bfloat16):
        words, sentence = encoder(x, lengths)
        (words.sum() + sentence.sum()).backward()
    assert words.dtype == sentence.dtype == torch.bfloat16
    assert all(parameter.grad.dtype == torch.float32 for parameter in encoder.parameters())
    for ours, theirs in zip((words, sentence), encoder(x, lengths), strict=True):
        assert (ours - theirs).norm() / theirs.norm() < 2e-2  # bfloat16


FUNCTIONAL = [{}, {"window": 2, "sentence_nodes": 2}, {"sentence_nodes": 0}, {"memory": "low"}]


@pytest.mark.parametrize("options", FUNCTIONAL)
def test_vmap_over_sentences_and_over_models_equals_one_after_another(options):
    torch.manual_seed(0)
    models = [encoder_with_random_weights(dtype=torch.float32, num_steps=3, **options) for _ in range(2)]
    x = torch.randn(4, 5, 3)
    for length in (5, 2):
        found = torch.vmap(partial(models[0], lengths=length))(x)
        for ours, theirs in zip(found, models[0](x, [length] * 4), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)  # float32
    lengths = torch.tensor([5, 1, 2, 4])
    for ours, theirs in zip(torch.vmap(models[0])(x, lengths), models[0](x, lengths), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)  # float32
    mask = torch.arange(5) < lengths[:, None]
    masked = torch.vmap(lambda sentence, mask: models[0](sentence, mask=mask).sentence)(x, mask)
    torch.testing.assert_close(masked, models[0](x, lengths).sentence, rtol=0, atol=1e-5)  # float32
    parameters, _ = torch.func.stack_module_state(models)
    words = torch.vmap(lambda parameters: torch.func.functional_call(models[0], parameters, (x,)).words)(parameters)
    for ours, model in zip(words, models, strict=True):
        torch.testing.assert_close(ours, model(x).words, rtol=0, atol=1e-5)  # float32


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("options", FUNCTIONAL)
def test_gradients_of_each_sentence_by_torch_func_equal_those_of_backward(options, compiled):
    torch.manual_seed(0)
    encoder = encoder_with_random_weights(dtype=torch.float32, num_steps=3, **options)
    x = torch.randn(4, 5, 3)

    def loss(parameters, sentence):
        return torch.func.functional_call(encoder, parameters, (sentence,)).sentence.square().sum()

    parameters = dict(encoder.named_parameters())
    gradients = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))
    if compiled:
        torch._dynamo.reset()
        gradients = torch.compile(gradients, backend="eager")
    found = gradients(parameters, x)
    for row, sentence in enumerate(x):
        expected = torch.autograd.grad(loss(parameters, sentence), list(parameters.values()))
        for name, gradient in zip(parameters, expected, strict=True):
            torch.testing.assert_close(found[name][row], gradient, rtol=1e-4, atol=1e-5)  # float32


@pytest.mark.parametrize("by", ["lengths", "mask"])
def test_gradients_of_each_sentence_with_its_own_length_equal_those_of_backward(by):
    torch.manual_seed(0)
    encoder = encoder_with_random_weights(dtype=torch.float32, num_steps=3)
    x, lengths = torch.randn(4, 5, 3), torch.tensor([5, 1, 2, 4])
    given = lengths if by == "lengths" else torch.arange(5) < lengths[:, None]

    def loss(parameters, sentence, one):
        return torch.func.functional_call(encoder, parameters, (sentence,), {by: one}).sentence.square().sum()

    parameters = dict(encoder.named_parameters())
    found = torch.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, given)
    for row in range(len(x)):
        expected = torch.autograd.grad(loss(parameters, x[row], given[row]), list(parameters.values()))
        for name, gradient in zip(parameters, expected, strict=True):
            torch.testing.assert_close(found[name][row], gradient, rtol=1e-4, atol=1e-5)  # float32


@pytest.mark.filterwarnings("ignore")  # torch.jit.trace is deprecated in newer versions, and warns of every size
def test_a_traced_encoder_can_be_saved_and_computes_the_same():
    encoder = encoder_with_random_weights(dtype=torch.float32)
    x, buffer = torch.randn(4, 5, 3), io.BytesIO()
    torch.jit.save(torch.jit.trace(encoder, (x,)), buffer)
    buffer.seek(0)
    torch.testing.assert_close(torch.jit.load(buffer)(x)[0], encoder(x).words, rtol=0, atol=1e-5)  # float32
