"""The wire contract: names, numbers, types and defaults of `object_detection.protos`."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import descriptor_pb2

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = Path(__file__).with_name("schema.txt")
PACKAGE = "object_detection.protos."
FieldProto = descriptor_pb2.FieldDescriptorProto


def _files():
    """The generated descriptors, by the .proto files that are there."""
    for path in sorted((ROOT / "protos" / "tandem" / "protos").glob("*.proto")):
        module = importlib.import_module(f"tandem.protos.{path.stem}_pb2")
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        yield path.name, file


def _lines_of_descriptors():
    for name, file in _files():
        for enum in file.enum_type:
            yield _enum_line(enum, "")
        for message in file.message_type:
            yield from _message_lines(message, "", name)


def _enum_line(enum, scope):
    return f"enum {scope}{enum.name}: " + " ".join(
        f"{v.name}={v.number}" for v in sorted(enum.value, key=lambda v: v.number)
    )


def _message_lines(message, scope, file_name):
    name = scope + message.name
    yield f"message {name}: {file_name}" + (" map" if message.options.map_entry else "")
    for first_last in message.extension_range:
        yield f"message {name}: extensions {first_last.start}-{first_last.end - 1}"
    for first_last in message.reserved_range:
        yield f"message {name}: reserved {first_last.start}-{first_last.end - 1}"
    for enum in message.enum_type:
        yield _enum_line(enum, f"{name}.")
    for nested in message.nested_type:
        yield from _message_lines(nested, f"{name}.", file_name)
    for field in message.field:
        in_oneof = field.HasField("oneof_index")
        yield _field_line(
            f"{name}.{field.name}",
            number=field.number,
            label=FieldProto.Label.Name(field.label).removeprefix("LABEL_").lower(),
            type_name=field.type_name.removeprefix(f".{PACKAGE}")
            or FieldProto.Type.Name(field.type).removeprefix("TYPE_").lower(),
            default=field.default_value if field.HasField("default_value") else None,
            oneof=message.oneof_decl[field.oneof_index].name if in_oneof else "",
            deprecated=field.options.deprecated,
        )


def _lines_of_facts(facts):
    """The same lines, from the facts about the original schema in shared/realdata/protos.json."""
    for name, values in facts["enums"].items():
        numbers = sorted(values.items(), key=lambda item: item[1])
        yield f"enum {name.removeprefix(PACKAGE)}: " + " ".join(f"{k}={v}" for k, v in numbers)
    for full_name, message in facts["messages"].items():
        name = full_name.removeprefix(PACKAGE)
        file_name = Path(message["file"]).name
        yield f"message {name}: {file_name}" + (" map" if message.get("map_entry") else "")
        for first, last in message.get("extension_ranges", []):
            yield f"message {name}: extensions {first}-{last}"
        for first, last in message.get("reserved", []):
            yield f"message {name}: reserved {first}-{last}"
        for field_name, field in message["fields"].items():
            if field.get("only_in") != "2.8.0":
                yield _field_line(
                    f"{name}.{field_name}",
                    number=field["number"],
                    label=field["label"],
                    type_name=field.get("type_name", "").removeprefix(PACKAGE) or field["type"],
                    default=field.get("default"),
                    oneof=field.get("oneof", ""),
                    deprecated=field.get("deprecated", False),
                )


def _field_line(name, *, number, label, type_name, default, oneof, deprecated):
    if type_name == "float" and default is not None:
        default = str(np.float32(default))  # protobuf itself makes 9.99999994e-09 of 1e-08
    line = f"{name} = {number}: {label} {type_name}"
    line += "" if default is None else f" default={default!r}"
    line += f" oneof={oneof}" if oneof else ""
    return line + (" deprecated" if deprecated else "")


def test_descriptors_equal_the_committed_wire_contract():
    assert sorted(_lines_of_descriptors()) == GOLDEN.read_text().splitlines()


def test_descriptors_equal_the_facts_about_the_original_schema(shared):
    facts = json.loads((shared / "realdata" / "protos.json").read_text())
    assert sorted(_lines_of_descriptors()) == sorted(_lines_of_facts(facts))
    assert len(facts["messages"]) == 166


def test_files_and_package_are_those_of_the_original(shared):
    facts = json.loads((shared / "realdata" / "protos.json").read_text())
    files = dict(_files())
    assert sorted(files) == sorted(Path(name).name for name in facts["files"])
    for original, fact in facts["files"].items():
        file = files[Path(original).name]
        imports = {Path(name).name for name in file.dependency}
        assert imports == {Path(name).name for name in fact["imports"]}
        assert (file.package, file.syntax or "proto2") == (fact["package"], fact["syntax"])


def test_fields_of_release_2_8_0_that_were_renamed_have_their_numbers_taken(shared):
    """Old names can't be kept beside the new ones, hence they are left out."""
    facts = json.loads((shared / "realdata" / "protos.json").read_text())
    for message in facts["messages"].values():
        newer = {f["number"] for f in message["fields"].values() if f.get("only_in") != "2.8.0"}
        for field in message["fields"].values():
            if field.get("only_in") == "2.8.0":
                assert field["number"] in newer


def test_generating_again_changes_nothing(tmp_path):
    pytest.importorskip("grpc_tools", reason="needs the dev extra")
    command = [sys.executable, str(ROOT / "scripts" / "protos"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    generated = {p.name: p.read_text() for p in (tmp_path / "tandem" / "protos").iterdir()}
    committed = {p.name: p.read_text() for p in (ROOT / "tandem" / "protos").glob("*_pb2.py*")}
    assert generated == committed
