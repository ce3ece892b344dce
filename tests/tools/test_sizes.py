import pytest

from noetl.tools.host.input_rules import byte_count


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (7, 7),
        ("7", 7),
        ("7B", 7),
        ("7 B", 7),
        ("2K", 2_000),
        ("512MB", 512_000_000),
        ("512 MiB", 512 * 1024**2),
        ("2Gi", 2 * 1024**3),
        ("1 TB", 10**12),
    ],
)
def test_a_size_says_bytes(size: int | str, expected: int) -> None:
    assert byte_count(size) == expected
