import gc
import json
import random
import weakref

import jsonschema
import numpy as np
import pytest

from edge_runtime.errors import CapabilityError, SchemaError, StageError
from edge_runtime.llm.document_spans import DocumentSpans
from edge_runtime.llm.grammar_vocabulary import grammar_vocabulary, special_tokens
from edge_runtime.llm.json_constraint import JsonConstraint
from edge_runtime.llm.sampling import allowed_tokens
from edge_runtime.llm.schema_tightening import JsonLimits
from edge_runtime.llm.scripted_engine import ScriptedEngine

NAME = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


@pytest.fixture(scope="module")
def engine() -> ScriptedEngine:
    return ScriptedEngine()


def compiled(engine, schema, **options) -> JsonConstraint:
    return JsonConstraint.from_schema(engine, schema, **options)


def accepts(constraint: JsonConstraint, text: str) -> bool:
    """Whether `text` is a whole answer."""
    constraint = constraint.fresh()
    tokens = constraint.engine.tokenize(text)
    if constraint.count_allowed(tokens) < len(tokens):
        return False
    constraint.advance_many(tokens)
    return constraint.can_stop


def allowed(constraint: JsonConstraint) -> set[int]:
    n_vocab = constraint.engine.capabilities.n_vocab
    return set(allowed_tokens(constraint.mask(), n_vocab).tolist())


def after(constraint: JsonConstraint, text: str) -> JsonConstraint:
    constraint = constraint.fresh()
    constraint.advance_many(constraint.engine.tokenize(text))
    return constraint


# What is accepted


def test_json_is_compact(engine):
    constraint = compiled(engine, NAME)
    assert accepts(constraint, '{"name":"x y"}')
    for text in ('{"name": "x"}', '{ "name":"x"}', ' {"name":"x"}', '{"name":"x"}\n'):
        assert not accepts(constraint, text)


def test_nothing_follows_the_closing_brace(engine):
    constraint = after(compiled(engine, NAME), '{"name":"x"}')
    assert constraint.is_done
    assert constraint.can_stop
    assert allowed(constraint) <= engine.eos_ids


def test_a_string_cannot_be_left_open(engine):
    constraint = after(compiled(engine, NAME), '{"name":"x')
    assert not constraint.can_stop
    assert not allowed(constraint) & engine.eos_ids


def test_control_characters_only_come_escaped(engine):
    constraint = compiled(engine, NAME)
    for code in range(32):
        assert not accepts(constraint, f'{{"name":"{chr(code)}"}}')
    assert accepts(constraint, '{"name":"a\\n\\t\\u0007\\"\\\\"}')


def test_marks_of_the_chat_template_are_never_text(engine):
    inside = after(compiled(engine, NAME), '{"name":"')
    assert special_tokens(engine) == {256, 257, 258}
    assert not allowed(inside) & special_tokens(engine)
    assert accepts(compiled(engine, NAME), '{"name":"<|im_end|>"}')


def test_max_length_counts_characters(engine):
    schema = {"type": "string", "maxLength": 3}
    constraint = compiled(engine, schema)
    assert accepts(constraint, '"日本é"')
    assert not accepts(constraint, '"abcd"')


def test_a_reference_is_followed(engine):
    schema = {
        "$defs": {
            "Item": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}},
            "N": {"type": "integer"},
        },
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Item"}}},
        "required": ["items"],
    }
    constraint = compiled(engine, schema)
    assert accepts(constraint, '{"items":[{"n":1},{}]}')
    assert not accepts(constraint, '{"items":[{"n":"1"}]}')


def test_an_enum_behind_a_reference_is_enforced(engine):
    schema = {
        "$defs": {"Kind": {"type": "string", "enum": ["cash", "card"]}},
        "type": "object",
        "properties": {"kind": {"$ref": "#/$defs/Kind"}},
        "required": ["kind"],
    }
    constraint = compiled(engine, schema)
    assert accepts(constraint, '{"kind":"card"}')
    assert not accepts(constraint, '{"kind":"coin"}')
    assert not accepts(constraint, '{"kind":{}}')


def test_a_recursive_schema_works(engine):
    schema = {
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
                "required": ["next"],
            }
        },
        "$ref": "#/$defs/Node",
    }
    assert accepts(compiled(engine, schema), '{"next":{"next":null}}')


def test_optional_may_be_left_out_but_is_not_null(engine):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["b"],
    }
    constraint = compiled(engine, schema)
    assert accepts(constraint, '{"b":1}')
    assert accepts(constraint, '{"a":2,"b":1}')
    assert not accepts(constraint, '{"a":null,"b":1}')
    assert not accepts(constraint, '{"a":2}')


def test_nullable_may_be_null_but_is_not_left_out(engine):
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["integer", "null"]}},
        "required": ["a"],
    }
    constraint = compiled(engine, schema)
    assert accepts(constraint, '{"a":null}')
    assert not accepts(constraint, "{}")


def test_one_of_distinct_alternatives_works(engine):
    kinds = [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, "n": {"type": "integer"}},
            "required": ["kind"],
        }
        for kind in ("x", "y")
    ]
    constraint = compiled(engine, {"oneOf": kinds})
    assert accepts(constraint, '{"kind":"y","n":3}')
    assert not accepts(constraint, '{"kind":"z"}')


def test_objects_have_no_unlisted_properties_unless_asked_for(engine):
    assert not accepts(compiled(engine, NAME), '{"name":"x","other":1}')
    schema = {**NAME, "additionalProperties": {"type": "integer"}}
    assert accepts(compiled(engine, schema), '{"name":"x","other":1}')
    limits = JsonLimits(close_objects=False)
    assert accepts(compiled(engine, NAME, limits=limits), '{"name":"x","other":1}')


def test_objects_combined_from_several_schemas_keep_all_their_properties(engine):
    schema = {
        "$defs": {
            "A": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            "B": {"$ref": "#/$defs/C"},
            "C": {"type": "object", "properties": {"c": {"type": "integer"}}, "required": ["c"]},
        },
        "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
    }
    assert accepts(compiled(engine, schema), '{"a":1,"c":2}')


def test_a_reference_wrapped_for_its_description_stays_closed(engine):
    schema = {
        "$defs": {"A": NAME},
        "type": "object",
        "properties": {"a": {"allOf": [{"$ref": "#/$defs/A"}], "description": "the name"}},
        "required": ["a"],
    }
    constraint = compiled(engine, schema)
    assert accepts(constraint, '{"a":{"name":"x"}}')
    assert not accepts(constraint, '{"a":{"name":"x","b":1}}')


@pytest.mark.parametrize("schema", [True, {}])
def test_a_schema_that_says_nothing_allows_any_json(engine, schema):
    constraint = compiled(engine, schema)
    for text in ("1", '"a"', '{"a":[null,true]}'):
        assert accepts(constraint, text)


# Everything ends


@pytest.mark.parametrize(
    ("schema", "fits", "too_long"),
    [
        ({"type": "string"}, '"aaaa"', '"aaaaa"'),
        ({"type": "string", "minLength": 6}, '"aaaaaa"', '"aaaaaaa"'),
        ({"type": "integer"}, "-999", "1000"),
        ({"type": "number"}, "999.25", "1.125"),
        ({"type": "number", "minimum": 5000}, "123456.5", "4999"),
        ({"type": "array", "items": {"type": "null"}}, "[null,null]", "[null,null,null]"),
        (
            {"type": "object", "additionalProperties": {"type": "null"}},
            '{"a":null,"b":null}',
            '{"a":null,"b":null,"c":null}',
        ),
    ],
)
def test_what_the_schema_leaves_open_is_bounded(engine, schema, fits, too_long):
    limits = JsonLimits(
        max_string_chars=4, max_array_items=2, max_map_entries=2, max_digits=3, max_decimals=2
    )
    if "minimum" in schema:
        schema = {**schema, "maximum": 200000}
    constraint = compiled(engine, schema, limits=limits)
    assert accepts(constraint, fits)
    assert not accepts(constraint, too_long)


def test_bounds_can_be_lifted(engine):
    limits = JsonLimits(None, None, None, None, None, close_objects=False)
    constraint = compiled(engine, {"type": "integer"}, limits=limits)
    assert accepts(constraint, "1" * 40)


RANDOM_SCHEMAS = [
    NAME,
    {
        "type": "object",
        "properties": {
            "company": {"type": ["string", "null"]},
            "date": {"type": "string", "format": "date"},
            "total": {"type": "number", "minimum": 0},
            "paid": {"type": "boolean"},
            "kind": {"enum": ["a", "b", None, 3]},
            "items": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"d": {"type": "string"}, "n": {"type": "integer"}},
                    "required": ["n"],
                },
            },
        },
        "required": ["company", "date", "total", "items"],
    },
    {"anyOf": [{"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"}, {"type": "null"}]},
    {"type": "object", "additionalProperties": {"type": "integer", "maximum": 9}},
]


@pytest.mark.parametrize("schema", RANDOM_SCHEMAS)
@pytest.mark.parametrize("seed", range(5))
def test_random_answers_end_and_are_valid(engine, schema, seed):
    limits = JsonLimits(max_string_chars=6, max_array_items=2, max_map_entries=2)
    constraint = compiled(engine, schema, limits=limits)
    rng = random.Random(seed)
    tokens: list[int] = []
    while not constraint.is_done:
        choices = sorted(allowed(constraint))
        token = rng.choice(choices)
        if token in engine.eos_ids:
            break
        constraint.advance(token)
        tokens.append(token)
        assert len(tokens) < 1000
    text = engine.detokenize(tokens).decode()
    value = json.loads(text)
    jsonschema.validate(value, schema)


# Forced tokens


def test_forced_tokens_are_the_only_allowed_ones(engine):
    constraint = compiled(engine, NAME)
    forced = constraint.forced()
    assert engine.detokenize(forced) == b'{"name":"'
    for token in forced:
        assert allowed(constraint) == {token}
        constraint.advance(token)
    assert constraint.forced() == []
    assert len(allowed(constraint)) > 90


def test_the_mask_is_one_bit_a_token(engine):
    mask = compiled(engine, NAME).mask()
    assert mask.dtype == np.uint32
    assert mask.shape == ((engine.capabilities.n_vocab + 31) // 32,)


def test_a_token_that_is_not_allowed_is_an_error(engine):
    with pytest.raises(StageError, match="does not allow"):
        compiled(engine, NAME).advance(ord("["))


def test_counting_changes_nothing(engine):
    constraint = compiled(engine, NAME)
    assert constraint.count_allowed(engine.tokenize('{"name":"ab"}junk')) == 13
    assert constraint.forced()[0] == ord("{")


def test_a_fresh_constraint_starts_over(engine):
    constraint = compiled(engine, NAME)
    constraint.advance_many(engine.tokenize('{"name":"a'))
    assert accepts(constraint.fresh(), '{"name":"b"}')
    assert constraint.count_allowed(engine.tokenize('"}')) == 2


# Schemas that are refused


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        ({"properties": {"a": {"not": {"type": "null"}}}}, "/properties/a", "not"),
        (
            {"type": "array", "items": {"type": "array", "uniqueItems": True}},
            "/items",
            "uniqueItems",
        ),
        ({"type": "string", "format": "colour"}, "", "format"),
        (
            {"properties": {"x/y": {"pattern": "(?=a)", "type": "string"}}},
            "/properties/x~1y",
            "pattern",
        ),
        ({"if": {}, "then": {}}, "", None),
        ({"$defs": {"A": {"type": "strin"}}, "$ref": "#/$defs/A"}, "/$defs/A", "type"),
        ({"$ref": "#/$defs/missing"}, "", "$ref"),
        ({"$ref": "https://example.org/schema"}, "", "$ref"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "", "oneOf"),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "", None),
        ({"type": "string", "minLength": 5, "maxLength": 2}, "", None),
        ({"dependentRequired": {"a": ["b"]}}, "", "dependentRequired"),
        ({"type": "object", "propertyNames": {"pattern": "^a"}}, "", "propertyNames"),
        (False, "", None),
    ],
)
def test_a_schema_that_cannot_be_honoured_is_refused_by_name(engine, schema, pointer, keyword):
    with pytest.raises(SchemaError) as caught:
        compiled(engine, schema)
    assert caught.value.details["pointer"] == pointer
    if keyword is not None:
        assert caught.value.details["keyword"] == keyword
        assert f"`{keyword}`" in caught.value.message


def test_something_that_is_no_json_is_refused(engine):
    with pytest.raises(SchemaError, match="not JSON"):
        compiled(engine, {"const": object()})


def test_a_bottomless_schema_is_refused(engine):
    schema: dict[str, object] = {}
    inner = schema
    for _ in range(5000):
        inner["items"] = inner = {}
    with pytest.raises(SchemaError, match="too deeply"):
        compiled(engine, schema)


def test_options_of_the_grammar_library_cannot_be_smuggled_in(engine):
    schema = {**NAME, "x-guidance": {"whitespace_flexible": True, "lenient": True}}
    assert not accepts(compiled(engine, schema), '{"name": "x"}')
    with pytest.raises(SchemaError):
        compiled(engine, {"not": {}, "x-guidance": {"lenient": True}})


# Spans of a document

SPANS = DocumentSpans(("ACME (M) SDN. BHD.", 'No. 5, "High" Road', "43000 KAJANG", "TOTAL 60.30"))


def record(**fields) -> dict:
    return {"type": "object", "properties": fields, "required": list(fields)}


def test_strings_are_limited_to_the_document(engine):
    constraint = compiled(engine, record(company={"type": "string"}), spans=SPANS)
    assert accepts(constraint, '{"company":"ACME (M) SDN. BHD."}')
    assert accepts(constraint, '{"company":"60.30"}')
    for text in ("ACME Ltd", "ACM", "", "BHD. No. 5,", " ACME"):
        assert not accepts(constraint, json.dumps({"company": text}, separators=(",", ":")))


def test_words_are_escaped_as_json(engine):
    constraint = compiled(engine, record(street={"type": "string"}), spans=SPANS)
    assert accepts(constraint, '{"street":"\\"High\\" Road"}')


def test_a_multiline_field_runs_over_lines(engine):
    address = {"type": "string", "x-multiline": True}
    constraint = compiled(engine, record(address=address), spans=SPANS)
    assert accepts(constraint, '{"address":"No. 5, \\"High\\" Road 43000 KAJANG"}')


def test_a_nullable_string_may_still_be_null(engine):
    constraint = compiled(engine, record(a={"type": ["string", "null"]}), spans=SPANS)
    assert accepts(constraint, '{"a":null}')
    assert not accepts(constraint, '{"a":"unknown"}')


@pytest.mark.parametrize(
    "exempt",
    [
        {"type": "string", "enum": ["cash"]},
        {"const": "cash"},
        {"type": "string", "pattern": "^ca"},
        {"type": "string", "x-span": False},
    ],
)
def test_strings_that_the_schema_shapes_itself_are_left_alone(engine, exempt):
    assert accepts(compiled(engine, record(a=exempt), spans=SPANS), '{"a":"cash"}')


def test_strings_behind_references_and_in_lists_are_limited_too(engine):
    schema = {
        "$defs": {"Item": record(d={"anyOf": [{"type": "string"}, {"type": "null"}]})},
        **record(items={"type": "array", "items": {"$ref": "#/$defs/Item"}}),
    }
    constraint = compiled(engine, schema, spans=SPANS)
    assert accepts(constraint, '{"items":[{"d":"TOTAL"},{"d":null}]}')
    assert not accepts(constraint, '{"items":[{"d":"TAX"}]}')


def test_names_of_open_maps_come_from_the_document(engine):
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    constraint = compiled(engine, schema, spans=SPANS)
    assert accepts(constraint, '{"TOTAL":"60.30"}')
    assert not accepts(constraint, '{"TAX":"60.30"}')


@pytest.mark.parametrize(
    "loose",
    [{}, True, {"type": "array"}, {"type": "object"}, {"description": "anything"}],
)
def test_a_value_of_any_type_is_refused_with_spans(engine, loose):
    with pytest.raises(SchemaError, match="cannot be limited"):
        compiled(engine, record(a=loose), spans=SPANS)
    assert compiled(engine, record(a=loose)).forced()


def test_a_value_of_any_type_can_be_exempt(engine):
    assert compiled(engine, record(a={"x-span": False}), spans=SPANS).forced()


def test_an_empty_document_leaves_only_the_empty_string(engine):
    constraint = compiled(engine, record(a={"type": "string"}), spans=DocumentSpans(()))
    assert accepts(constraint, '{"a":""}')
    assert not accepts(constraint, '{"a":"x"}')


# The vocabulary


def test_the_vocabulary_is_built_once_and_goes_with_its_engine():
    engine = ScriptedEngine()
    assert grammar_vocabulary(engine) is grammar_vocabulary(engine)
    gone = weakref.ref(engine)
    del engine
    gc.collect()
    assert gone() is None


def test_an_engine_without_an_end_token_cannot_be_limited():
    class Endless(ScriptedEngine):
        @property
        def eos_ids(self) -> frozenset[int]:
            return frozenset()

    with pytest.raises(CapabilityError, match="no end-of-answer token"):
        compiled(Endless(), NAME)


def test_a_tokenizer_that_adds_spaces_still_spells_the_grammar():
    class Spaced(ScriptedEngine):
        def tokenize(self, text: str, *, special: bool = False) -> list[int]:
            return super().tokenize(" " + text, special=special)

    spaced = Spaced()
    constraint = compiled(spaced, NAME)
    assert spaced.detokenize(constraint.forced()) == b'{"name":"'


def test_a_string_alone_can_be_a_span(engine):
    constraint = compiled(engine, {"type": "string", "title": "Total"}, spans=SPANS)
    assert accepts(constraint, '"TOTAL 60.30"')
    assert not accepts(constraint, '"TAX"')


def test_spans_of_different_kinds_are_kept_apart(engine):
    schema = record(
        a={"type": "string", "maxLength": 4, "description": "short"},
        b={"type": ["string", "null"]},
        c={"type": "string", "x-multiline": True},
        d={"type": ["string", "integer"]},
    )
    constraint = compiled(engine, schema, spans=SPANS)
    assert accepts(constraint, '{"a":"ACME","b":null,"c":"KAJANG TOTAL","d":7}')
    assert accepts(constraint, '{"a":"(M)","b":"TOTAL","c":"TOTAL","d":"TOTAL"}')
    assert not accepts(constraint, '{"a":"TOTAL","b":null,"c":"TOTAL","d":7}')
    assert not accepts(constraint, '{"a":"ACME","b":"KAJANG TOTAL","c":"TOTAL","d":7}')
    assert not accepts(constraint, '{"a":"ACME","b":null,"c":null,"d":7}')


def test_a_problem_beside_spans_is_still_located(engine):
    schema = record(a={"type": "string"}, b={"type": "string", "not": {}})
    with pytest.raises(SchemaError) as caught:
        compiled(engine, schema, spans=SPANS)
    assert caught.value.details == {"pointer": "/properties/b", "keyword": "not"}
