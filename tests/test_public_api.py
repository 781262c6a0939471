"""The public names are few, documented, and really there."""

import sentence_state


def test_every_public_name_exists_and_has_a_docstring():
    assert len(set(sentence_state.__all__)) == len(sentence_state.__all__)
    for name in sentence_state.__all__:
        value = getattr(sentence_state, name)
        if name != "ENCODERS":
            assert (value.__doc__ or "").strip(), name


def test_the_dictionary_of_encoders_has_the_names_of_the_papers_tables():
    assert list(sentence_state.ENCODERS) == [
        "S-LSTM", "LSTM", "BiLSTM", "2 stacked BiLSTM", "3 stacked BiLSTM", "4 stacked BiLSTM",
        "CNN", "2 stacked CNN", "3 stacked CNN", "4 stacked CNN",
        "Transformer (N=6)", "Transformer (N=8)", "Transformer (N=10)",
    ]  # fmt: skip
