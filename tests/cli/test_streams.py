"""Standard streams of an encoding that lacks what reports are written with."""

from __future__ import annotations

import subprocess
import sys

import pytest

WRITE = """
import sys
from coldrun.cli.streams import outlive_readers
outlive_readers()
for stream in (sys.stdout, sys.stderr):
    stream.write("p \\u2264 0.025 \\u00b7 caf\\u00e9 \\udc80 \\u4f60")
"""


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("ascii", rb"p <= 0.025 | caf\xe9 \udc80 \u4f60"),
        ("latin-1", b"p <= 0.025 \xb7 caf\xe9 \\udc80 \\u4f60"),
    ],
)
def test_stream_of_another_encoding_spells_out_what_it_lacks(
    encoding: str, expected: bytes
) -> None:
    """Signs become words of ASCII, anything else an escape; nothing is an error."""
    done = subprocess.run(
        [sys.executable, "-c", WRITE],
        env={"PYTHONIOENCODING": encoding, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (expected, expected)
