"""Where the real data is: `pytest --data DIR`, default ../shared/data beside the project; absent data skips its tests."""

from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--data", default=str(PROJECT.parent / "shared" / "data"), help="folder with camvid/, video/, ...")


@pytest.fixture(scope="session")
def data_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of real data sets; skips where it is absent."""
    folder = Path(request.config.getoption("--data"))
    if not folder.is_dir():
        pytest.skip(f"real data is absent: no folder {folder} (pytest --data DIR)")
    return folder
