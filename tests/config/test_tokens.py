from tandem.config.tokens import walk
from tandem.protos.pipeline_pb2 import TrainEvalPipelineConfig


def tokens(text):
    return list(walk(text, TrainEvalPipelineConfig.DESCRIPTOR))


def test_every_token_knows_its_place_role_and_field():
    text = "train_config {\n  batch_size: 8  # images\n}"
    assert [(t.text, t.line, t.column, t.role, t.field_path) for t in tokens(text)] == [
        ("train_config", 1, 1, "name", "train_config"),
        ("{", 1, 14, "mark", "train_config"),
        ("batch_size", 2, 3, "name", "train_config.batch_size"),
        (":", 2, 13, "mark", "train_config.batch_size"),
        ("8", 2, 15, "value", "train_config.batch_size"),
        ("}", 3, 1, "mark", "train_config.batch_size"),
        ("", 3, 2, "end", ""),
    ]


def test_blocks_of_a_repeated_field_are_counted():
    text = "eval_input_reader { name: 'a' } eval_input_reader: [{ name: 'b' }, < name: 'c' >]"
    values = {t.text: t.path for t in tokens(text) if t.role == "value"}
    assert values == {
        "'a'": "eval_input_reader[0]",
        "'b'": "eval_input_reader[1]",
        "'c'": "eval_input_reader[2]",
    }


def test_strings_in_a_row_are_values_of_one_field():
    found = [t for t in tokens("eval_config { metrics_set: 'a' 'b' }") if t.role == "value"]
    assert [t.field_path for t in found] == ["eval_config.metrics_set"] * 2


def test_the_end_within_a_block_says_where_it_began():
    end = tokens("model {\n ssd {")[-1]
    assert (end.role, end.path, end.opened_line) == ("end", "model.ssd", 2)


def test_nothing_is_known_within_a_field_that_the_schema_lacks():
    found = next(t for t in tokens("foo { bar: 1 }") if t.text == "bar")
    assert (found.message, found.field, found.path) == (None, None, "foo")


def test_a_tab_is_one_column_as_in_protobuf():
    assert tokens("\tmodel {}")[0].column == 2
