"""Choices on the command line are those of the library."""

from typing import get_args, get_type_hints

from sentence_state.commands.flags import ColumnFlags
from sentence_state.data.tag_schemes import SCHEMES


def test_every_tag_scheme_can_be_chosen():
    assert set(get_args(get_type_hints(ColumnFlags)["tag_scheme"])) == {"auto", "plain", *SCHEMES}
