"""Fixtures that tests of every part use."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real artefacts and goldens beside the checkout; a checkout alone has none."""
    folder = Path(__file__).resolve().parent.parent.parent / "shared"
    if not (folder / "golden").is_dir():
        pytest.skip(f"needs the folder of goldens and real data at {folder}")
    return folder
