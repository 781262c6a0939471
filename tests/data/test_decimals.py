"""The fast parser of decimal numbers equals float(), number by number."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentence_state.data.decimals import parse_decimals

written = st.one_of(
    st.builds("{:.5g}".format, st.floats(-3, 3)),
    st.builds("{:.6f}".format, st.floats(-30, 30)),
    st.builds("{:.9f}".format, st.floats(-3, 3)),
    st.builds("{}{}.{:08d}".format, st.sampled_from(["", "-"]), st.integers(0, 9), st.integers(0, 99_999_999)),
    st.builds(repr, st.floats(allow_nan=False, allow_infinity=False, width=32)),
    st.sampled_from(["0", "-0", "1", "-0.0", ".5", "-.5", "5.", "+1.5", "1e-05", "-1.2E+3", "123456.789"]),
    st.just("0.12345678901234567"),
)


@given(st.lists(written, min_size=1, max_size=60))
@example(["0.067874"] * 30 + ["1e-05"])
@example(["0.12345678901234"] * 3)
def test_numbers_equal_float(numbers):
    expected = np.array([float(number) for number in numbers], np.float32)
    assert parse_decimals(" ".join(numbers).encode()).tobytes() == expected.tobytes()


@pytest.mark.parametrize("bad", ["1.2.3", "0.12a4", "a.1234", "0.1:3", "x", "", "0,5", "1.5e", "0./2", "--1.5"])
@pytest.mark.parametrize("others", [0, 30])
def test_what_is_no_number_is_refused(bad, others):
    with pytest.raises(ValueError, match=r"could not convert|expected"):
        parse_decimals(" ".join(["0.5"] * others + [bad] + ["0.25"] * others).encode())
