"""What a server leaves in its home, for those who look for it."""

from pathlib import Path

from noetl.stores.home_folder import Home
from noetl.stores.server_record import only_server, wait_for_server_end


def test_the_end_of_a_server_is_waited_for_as_long_as_one_likes(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.make()
    assert wait_for_server_end(home, 0)  # there was none yet
    with only_server(home):
        assert not wait_for_server_end(home, 0.1)
    assert wait_for_server_end(home, 0.1)
    assert wait_for_server_end(home)
