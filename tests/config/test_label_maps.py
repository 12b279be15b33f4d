import json

import pytest

from tandem.config.label_maps import Category, check_num_classes, load_label_map
from tandem.errors import LabelMapError
from tandem.protos.string_int_label_map_pb2 import StringIntLabelMap


@pytest.fixture
def load(tmp_path):
    def load(content):
        path = tmp_path / "map.pbtxt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_label_map(str(path))

    return load


@pytest.fixture
def message_of(load):
    def message_of(content):
        with pytest.raises(LabelMapError) as error:
            load(content)
        return str(error.value).rpartition("/")[2]

    return message_of


def test_items_keep_their_order_and_gaps(load):
    label_map = load("item { id: 5 name: 'b' } item { id: 2 name: 'a' display_name: 'A!' }")
    assert label_map.items == (Category(5, "b", ""), Category(2, "a", "A!"))
    assert [c.label for c in label_map.items] == ["b", "A!"]
    assert label_map.max_id == 5


def test_a_class_is_found_by_name_and_by_display_name(load):
    label_map = load("item { id: 1 name: '/m/1' display_name: 'person' } item { id: 2 name: 'x' }")
    assert label_map.ids_by_name == {"/m/1": 1, "person": 1, "x": 2}


def test_a_text_that_is_one_items_name_and_anothers_display_name_has_the_higher_id(load):
    label_map = load("item { id: 3 name: 'a' } item { id: 1 name: 'b' display_name: 'a' }")
    assert label_map.ids_by_name["a"] == 3


def test_of_two_items_with_one_id_the_first_names_the_class_and_both_are_found(load):
    label_map = load("item { id: 1 name: 'car' } item { id: 1 name: 'truck' }")
    assert label_map.items == (Category(1, "car", ""),)
    assert label_map.ids_by_name == {"car": 1, "truck": 1}


def test_of_two_items_with_one_name_the_last_is_found_and_a_warning_says_so(load, caplog):
    label_map = load("item { id: 1 name: 'a' } item { id: 2 name: 'a' }")
    assert label_map.ids_by_name == {"a": 2}
    assert "'a' is the name of id 1 and of id 2" in caplog.text


def test_the_background_is_found_but_is_no_class(load):
    label_map = load("item { id: 0 name: 'background' } item { id: 1 name: 'a' }")
    assert label_map.items == (Category(1, "a", ""),)
    assert label_map.ids_by_name == {"background": 0, "a": 1}


def test_a_label_map_cannot_be_changed(load):
    label_map = load("item { id: 1 name: 'a' }")
    with pytest.raises(TypeError):
        label_map.ids_by_name["b"] = 2


@pytest.mark.parametrize(
    "text",
    [
        'item { id: 1 name: "a" }',
        "item{id:1 name:'a'}",
        "item: {\n\tid: 1,\n\tname: 'a';\n},",
        "item < id: 1 name: 'a' > # comment",
        "item [ { id: 1 name: 'a' } ]",
        "\ufeffitem { id: 1 name: 'a' }\r\n",
    ],
)
def test_all_spellings_of_the_text_format_are_read(load, text):
    assert load(text).items == (Category(1, "a", ""),)


def test_text_beyond_ascii_is_read(load):
    assert load("item { id: 1 name: 'Bücherwürmer\tß' }").ids_by_name == {"Bücherwürmer\tß": 1}


def test_a_binary_label_map_is_read(load):
    binary = StringIntLabelMap(item=[{"name": "a", "id": 1}, {"name": "ü", "id": 2}])
    assert load(binary.SerializeToString()).ids_by_name == {"a": 1, "ü": 2}


def test_an_error_in_a_binary_label_map_names_the_item(message_of):
    binary = StringIntLabelMap(item=[{"name": "a", "id": 1}, {"name": "b", "id": -2}])
    assert message_of(binary.SerializeToString()) == (
        "map.pbtxt: item[1] ('b'): expected an id of 1 or more, found -2"
    )


def test_bytes_that_are_neither_text_nor_a_label_map_are_refused(message_of):
    assert message_of(b"\x89PNG\r\n\x1a\n") == "map.pbtxt:1: expected UTF-8 text, found byte 0x89"


def test_three_classes_in_one_item_are_an_error_that_names_the_field(message_of):  # case C41
    text = 'item {\n  name: "a"\n  id: 1\n  name: "b"\n  id: 2\n  name: "c"\n  id: 3\n}'
    assert message_of(text) == (
        "map.pbtxt:4:9: 'name' stands twice in item[0] (StringIntLabelMapItem), "
        "first on line 2; it can have one value only"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("item { id: 1 nme: 'a' }", "map.pbtxt:1:14: unknown field 'nme' in item[0]"),
        ("item { id: 1 name: a }", "map.pbtxt:1:20: item[0].name: expected text in quotes"),
        ("item { id: 1 name: 'a'", "the text ends before 'item[0]' (begun on line 1) is closed"),
        ("item { id: 1 name: 'a\n }", "map.pbtxt:1:20: item[0].name: the string 'a has no closing"),
        ("item { id: 1 frequency: OFTEN }", "expected one of UNSPECIFIED, FREQUENT, COMMON, RARE"),
        (
            "item { id: 1 name: 'a' }\nitem { id: -3 name: 'b' }",
            "map.pbtxt:2: item[1] ('b'): expected an id of 1 or more, found -3",
        ),
        ("item { name: 'a' id: 0 }", "('a'): expected an id of 1 or more, found 0; 0 is kept for"),
        ("item { name: 'a' }", "('a'): expected an id of 1 or more, found none"),
        ("item { id: 1 }", "item[0] has neither a name nor a display_name"),
        (
            "item { id: 1 name: 'a' keypoints { id: 4 } keypoints { id: 4 } }",
            "two keypoints have the id 4",
        ),
        ("", "map.pbtxt: the label map has no classes"),
        ("item { id: 0 name: 'background' }", "map.pbtxt: the label map has no classes"),
    ],
)
def test_what_cannot_be_used_is_refused_with_file_line_and_reason(message_of, text, expected):
    assert expected in message_of(text)


def test_a_missing_file_is_a_label_map_error(tmp_path):
    with pytest.raises(LabelMapError, match=r"nope\.pbtxt: can't be read: No such file"):
        load_label_map(str(tmp_path / "nope.pbtxt"))


def test_as_many_classes_as_the_highest_id_pass(load):
    check_num_classes(load("item { id: 5 name: 'e' } item { id: 1 name: 'a' }"), 5, path="m.pbtxt")


@pytest.mark.parametrize("num_classes", [4, 6])  # case C43: 4 classes, 5 labels
def test_another_number_of_classes_is_an_error_that_names_both_and_the_file(load, num_classes):
    label_map = load(" ".join(f"item {{ id: {n} name: 'class{n}' }}" for n in range(1, 6)))
    with pytest.raises(LabelMapError) as error:
        check_num_classes(label_map, num_classes, path="m.pbtxt", field="model.ssd.num_classes")
    assert str(error.value).startswith(
        f"m.pbtxt: the highest id is 5 ('class5'), but model.ssd.num_classes is {num_classes}; "
        "set model.ssd.num_classes to 5 in the config"
    )


def test_all_real_label_maps_are_read(shared):
    folder = shared / "realdata"
    truth = json.loads((folder / "configs" / "parse_truth.json").read_text())["label_maps"]
    assert len(truth) == 13
    for name, fact in truth.items():
        label_map = load_label_map(str(folder / name))
        background = 0 in label_map.ids_by_name.values()
        assert len(label_map.items) + background == fact["items"], name


def test_the_coco_label_map_has_80_classes_and_90_ids(shared):
    folder = shared / "realdata" / "label_maps" / "upstream"
    label_map = load_label_map(str(folder / "mscoco_label_map.pbtxt"))
    assert (len(label_map.items), label_map.max_id) == (80, 90)
    assert label_map.ids_by_name["toothbrush"] == 90
