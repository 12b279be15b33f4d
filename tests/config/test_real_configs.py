"""150 configs that people trained with: each parses or is refused as protobuf itself says."""

import json

import pytest

from tandem.config.limits import value_problems
from tandem.config.pipeline import load_pipeline, num_classes_of, write_pipeline
from tandem.errors import ConfigError


@pytest.fixture(scope="module")
def truth(shared):
    return json.loads((shared / "realdata" / "configs" / "parse_truth.json").read_text())["configs"]


def test_every_config_parses_or_is_refused_as_protobuf_says(shared, truth):
    assert len(truth) == 150
    verdicts = {}
    for name in truth:
        try:
            load_pipeline(str(shared / "realdata" / name))
            verdicts[name] = True
        except ConfigError:
            verdicts[name] = False
    assert verdicts == {name: fact["parses"] for name, fact in truth.items()}


def test_every_refusal_has_the_place_that_protobuf_gives(shared, truth):
    refused = {name: fact["error"] for name, fact in truth.items() if not fact["parses"]}
    assert len(refused) == 7
    for name, reason in refused.items():
        path = str(shared / "realdata" / name)
        with pytest.raises(ConfigError) as error:
            load_pipeline(path)
        place = reason.split(" ")[0]
        assert str(error.value).startswith(f"{path}:{place}: ")


def test_every_config_is_written_as_protobuf_writes_it(shared, truth):
    different = []
    for name in (name for name, fact in truth.items() if fact["parses"]):
        folder = shared / "realdata"
        written = write_pipeline(load_pipeline(str(folder / name)))
        canonical = folder / name.replace("configs/", "configs/canonical/", 1)
        if written != canonical.read_text():
            different.append(name)
    assert different == []


def test_no_value_of_a_real_config_is_called_impossible(shared, truth):
    for name in (name for name, fact in truth.items() if fact["parses"]):
        config = load_pipeline(str(shared / "realdata" / name))
        assert value_problems(config) == [], name


def test_the_seeds_config_is_read(shared):
    config = load_pipeline(str(shared / "seed" / "ssdlite_mobiledet_cpu_books.config"))
    assert num_classes_of(config) == 1
    assert config.model.ssd.feature_extractor.type == "ssd_mobiledet_cpu"
    assert value_problems(config) == []
