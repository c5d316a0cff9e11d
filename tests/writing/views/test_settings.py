import pytest
from pydantic import TypeAdapter, ValidationError

from sentloom.errors import InputError
from sentloom.writing.views.settings import (
    BackTranslation,
    MaskFill,
    Pivot,
    Synonyms,
    ViewSettings,
    parse_pivot,
    view_settings,
)

PIVOT = {"forward": "a", "backward": "b"}


def test_defaults_are_those_of_the_paper():
    assert Synonyms().share == 0.3
    assert MaskFill(model="m").share == 0.2
    assert BackTranslation().pivots == ()
    assert BackTranslation().decoding == "beam"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"kind": "back-translation"}, "BackTranslation"),
        (
            {"kind": "back-translation", "pivots": [PIVOT, PIVOT], "decoding": "sampling", "top_p": 0.9},
            "BackTranslation",
        ),
        ({"kind": "synonyms", "share": 0.1, "seed": 3}, "Synonyms"),
        ({"kind": "mask-fill", "model": "folder"}, "MaskFill"),
        ({"kind": "file", "file": "pairs.tsv", "missing": "skip"}, "ReadyPairs"),
        ({"kind": "entailment"}, "Entailment"),
        ({"kind": "neighbours", "sentences": 3}, "Neighbours"),
        ({"kind": "spans", "pairs": 2, "shortest": 0.2, "longest": 0.3, "seed": 4}, "Spans"),
    ],
)
def test_the_kind_selects_the_model_and_values_round_trip(values, kind):
    settings = view_settings(values)
    assert type(settings).__name__ == kind
    assert settings == TypeAdapter(ViewSettings).validate_python(settings.model_dump())
    assert hash(settings) == hash(view_settings(values))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": "paraphrase"}, "one of back-translation, synonyms"),
        ({"share": 0.3}, "kind None"),
        ({"kind": "synonyms", "model": "m"}, "unknown name 'model'. Expected one of kind, share, seed"),
        ({"kind": "synonyms", "share": 0}, "share is 0. Expected a number greater than 0"),
        ({"kind": "synonyms", "share": 1.5}, "less than or equal to 1"),
        ({"kind": "mask-fill"}, "model is missing"),
        ({"kind": "back-translation", "pivots": [PIVOT] * 3}, "at most 2 items"),
        ({"kind": "back-translation", "pivots": [{"forward": "a"}]}, "pivots.0.backward is missing"),
        ({"kind": "back-translation", "beams": 4}, "beams has no effect with the embedded translator"),
        ({"kind": "back-translation", "decoding": "sampling"}, "decoding has no effect with the embedded translator"),
        ({"kind": "back-translation", "pivots": [PIVOT], "seed": 4}, "seed has no effect with decoding beam"),
        ({"kind": "back-translation", "pivots": [PIVOT], "decoding": "sampling", "beams": 2}, "beams has no effect"),
    ],
)
def test_invalid_settings_are_named(values, said):
    with pytest.raises(InputError) as error:
        view_settings(values)
    assert said in str(error.value)


def test_settings_are_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Synonyms().share = 0.5


def test_a_pivot_is_two_names():
    assert parse_pivot("en-de , de-en") == Pivot(forward="en-de", backward="de-en")
    for bad in ("en-de", "en-de,", ",de-en"):
        with pytest.raises(InputError, match="forward,backward"):
            parse_pivot(bad)
