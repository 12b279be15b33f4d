"""What the images install is what was tested, by the letter."""

import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements"
LOCKS = sorted(path.name for path in REQUIREMENTS.glob("*.lock"))
RUNTIME_LOCKS = [name for name in LOCKS if name.startswith("runtime-")]
IMAGE = {"python_version": "3.11", "python_full_version": "3.11.14"}


def pins(name):
    """Version by distribution, as the image's Python sees the lock."""
    found = {}
    for line in (REQUIREMENTS / name).read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            requirement = Requirement(line.removesuffix("\\"))
            if requirement.marker is None or requirement.marker.evaluate(IMAGE):
                [version] = requirement.specifier
                found[canonicalize_name(requirement.name)] = version.version
    return found


def test_there_is_a_lock_for_each_accelerator():
    assert RUNTIME_LOCKS == ["runtime-cpu.lock", "runtime-gpu.lock", "runtime-tpu.lock"]


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_has_hashes_and_no_index_is_named(name):
    text = (REQUIREMENTS / name).read_text()
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text


@pytest.mark.parametrize("name", ["runtime-cpu.lock", "runtime-gpu.lock", "tensorboard.lock"])
def test_images_install_the_versions_that_the_tests_ran_with(name):
    tested = pins("dev.lock")
    shipped = pins(name)
    assert {key: shipped[key] for key in shipped if key in tested} == {
        key: tested[key] for key in shipped if key in tested
    }
    assert len(shipped.keys() & tested.keys()) >= 15


@pytest.mark.parametrize("name", RUNTIME_LOCKS)
def test_runtime_locks_hold_all_that_the_project_depends_on(name):
    shipped = pins(name)
    needed = [need for need in map(Requirement, requires("tandem")) if need.marker is None]
    assert needed
    for need in needed:
        assert shipped[canonicalize_name(need.name)] in need.specifier


def test_the_tensorboard_image_has_no_tensorflow():
    assert not [
        name for name in pins("tensorboard.lock") if name.startswith(("tensorflow", "keras"))
    ]
