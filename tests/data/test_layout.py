import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.layout import Layout, ShapeRequest, as_columns, layout_of, one_label_each, parse_columns
from sentloom.data.shapes import COLUMNS, Shape
from sentloom.errors import InputError

ANYTHING = ShapeRequest()


def layout(header: str, request: ShapeRequest = ANYTHING, nli_words: bool = False) -> Layout:
    return layout_of("faq.csv", header.split(","), lambda at: nli_words, request)


@pytest.mark.parametrize(
    ("header", "shape", "used"),
    [
        ("text", "texts", "text"),
        ("id,Sentence", "texts", "Sentence"),
        ("label,text", "classification", "text label"),
        ("content,category", "classification", "content category"),
        ("anchor,positive", "pairs", "anchor positive"),
        ("question,answer", "pairs", "question answer"),
        ("Answer,Question,url", "pairs", "Question Answer"),
        ("query,passage", "pairs", "query passage"),
        ("title,body,votes", "pairs", "title body"),
        ("question,answer,category", "pairs", "question answer"),
        ("anchor,positive,negative,source", "triplets", "anchor positive negative"),
        ("sent0,sent1,hard_neg", "triplets", "sent0 sent1 hard_neg"),
        ("query,negatives,positive", "triplets", "query positive negatives"),
        ("sentence1,sentence2,score", "scored-pairs", "sentence1 sentence2 score"),
        ("score,Sentence_1,Sentence_2,subset", "scored-pairs", "Sentence_1 Sentence_2 score"),
        ("sentence_A,sentence_B,label,relatedness_score", "scored-pairs", "sentence_A sentence_B relatedness_score"),
        ("text1,text2,similarity", "scored-pairs", "text1 text2 similarity"),
        ("premise,hypothesis,label", "nli", "premise hypothesis label"),
        ("gold_label,premise,hypothesis", "nli", "premise hypothesis gold_label"),
        ("source,target", "parallel", "source target"),
        ("src,tgt", "parallel", "src tgt"),
        # Two sides with a label or score are never positive pairs.
        ("qid,label,question,answer", "scored-pairs", "question answer label"),
        ("sentence1,sentence2,label", "scored-pairs", "sentence1 sentence2 label"),
        ("question1,question2,is_duplicate", "scored-pairs", "question1 question2 is_duplicate"),
        ("source,target,score", "scored-pairs", "source target score"),
        ("anchor,positive,score", "scored-pairs", "anchor positive score"),
    ],
)
def test_the_shape_is_inferred_from_names(header: str, shape: str, used: str) -> None:
    inferred = layout(header)
    assert inferred.shape == shape
    assert inferred.used == dict(zip(COLUMNS[inferred.shape], used.split(), strict=True))
    assert set(inferred.ignored) == set(header.split(",")) - set(used.split())


def test_a_label_that_is_an_nli_word_makes_the_shape_nli() -> None:
    assert layout("label,sentence1,sentence2", nli_words=True).shape is Shape.NLI
    assert layout("question,sentence,label", nli_words=True).used == {
        "premise": "question",
        "hypothesis": "sentence",
        "label": "label",
    }
    assert layout("sentence1,sentence2,score,label", nli_words=True).shape is Shape.SCORED_PAIRS


def test_several_negatives_are_taken_in_the_order_of_the_header() -> None:
    assert layout("anchor,positive,negative_2,negative_1").roles["negatives"] == (2, 3)


@given(st.permutations(["Anchor", "POSITIVE", "hard-neg", "id"]))
def test_order_and_case_do_not_matter(names: list[str]) -> None:
    inferred = layout(",".join(names))
    assert inferred.shape is Shape.TRIPLETS
    assert inferred.roles == {
        "anchor": (names.index("Anchor"),),
        "positive": (names.index("POSITIVE"),),
        "negatives": (names.index("hard-neg"),),
    }
    assert inferred.ignored == ("id",)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("id,body", "no text"),
        ("text,sentence", "text or sentence"),
        ("question,query,answer", "question,answer or query,answer"),
        ("question,answer,source,target", "question,answer or source,target"),
        ("premise,hypothesis", "no label"),
        ("anchor,positive,negative,score", "both negatives and a label or score"),
        ("text,text", "text or text"),
    ],
)
def test_unclear_headers_are_refused_with_columns_names_and_a_fix(header: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        layout(header)
    assert message in caught.value.problem
    assert all(repr(name) in caught.value.problem for name in header.split(","))
    assert "question" in caught.value.expected
    assert "hypothesis" in caught.value.expected
    assert "columns='anchor=title,positive=body'" in caught.value.fix
    assert caught.value.where == "faq.csv"


def test_a_similar_name_is_suggested() -> None:
    with pytest.raises(InputError, match=r"Did you mean 'question' instead of 'qestion'\?"):
        layout("qestion,replies")


def test_a_requested_shape_is_the_only_one_considered() -> None:
    assert layout("question,answer,label", ShapeRequest(Shape.PAIRS)).ignored == ("label",)
    assert layout("source,target,score", ShapeRequest(Shape.PARALLEL)).shape is Shape.PARALLEL
    assert layout("source,target,question,answer", ShapeRequest(Shape.PARALLEL)).used["source"] == "source"
    assert layout("text,label", ShapeRequest(Shape.TEXTS)).ignored == ("label",)
    assert layout("sentence1,sentence2,label", ShapeRequest(Shape.NLI)).shape is Shape.NLI
    with pytest.raises(InputError, match=r"no column of negatives among .*\. Expected the columns .* and negative"):
        layout("anchor,positive", ShapeRequest(Shape.TRIPLETS))


def test_requested_columns_win() -> None:
    asked = layout("text,body,label", ShapeRequest(columns={"text": "body"}))
    assert (asked.shape, asked.roles, asked.ignored) == (Shape.TEXTS, {"text": (1,)}, ("text", "label"))
    asked = layout(
        "a,b,c,d", ShapeRequest(columns={"negative_1": "c", "anchor": "b", "positive": "a", "negative_2": "d"})
    )
    assert (asked.shape, asked.roles) == (Shape.TRIPLETS, {"anchor": (1,), "positive": (0,), "negatives": (2, 3)})
    asked = layout("column 1,column 2", ShapeRequest(columns={"anchor": 2, "positive": 1}))
    assert asked.roles == {"anchor": (1,), "positive": (0,)}


def test_texts_may_have_a_title_which_is_kept() -> None:
    asked = layout("subject,body,id", ShapeRequest(columns={"text": "body", "title": "subject"}))
    assert (asked.shape, asked.roles, asked.kept) == (Shape.TEXTS, {"text": (1,)}, {"title": 0})
    assert (asked.used, asked.ignored) == ({"text": "body"}, ("id",))
    with pytest.raises(InputError, match="the roles of one shape"):
        layout("subject,body,id", ShapeRequest(columns={"title": "subject"}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": "boody"}, r"Did you mean 'body' instead of 'boody'\?"),
        ({"text": 3}, "there is no column 3 among"),
        ({"text": 0}, "there is no column 0 among"),
        ({"text": "frage"}, "there is no column 'frage' among"),
        ({"anchr": "body"}, r"Did you mean 'anchor' instead of 'anchr'\?"),
        ({"anchor": "body"}, "the roles of one shape"),
    ],
)
def test_unknown_columns_are_refused(columns: dict[str, str | int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        layout("body,id", ShapeRequest(columns=columns))


def test_a_name_that_several_columns_have_is_said_to_be_ambiguous() -> None:
    with pytest.raises(InputError, match="there is more than one column 'Body' among"):
        layout("body,bo_dy,id", ShapeRequest(columns={"text": "Body"}))


def test_columns_and_shape_must_agree() -> None:
    with pytest.raises(InputError, match=r"these are the roles of texts\. Expected the roles of pairs"):
        layout("body,id", ShapeRequest(Shape.PAIRS, {"text": "body"}))


def test_kept_columns_are_included_if_present() -> None:
    asked = layout("Subset,text,id", ShapeRequest(keep=("subset", "genre", "text")))
    assert asked.kept == {"subset": 0}
    assert asked.ignored == ("id",)


def test_several_label_columns() -> None:
    columns = parse_columns("text=message,label=intent + 3")
    assert one_label_each(columns) == [{"text": "message", "label": "intent"}, {"text": "message", "label": 3}]
    assert as_columns({"text": "message", "label": ["intent", 3]}) == {"text": "message", "label": "intent+3"}
    for single in (None, {"anchor": "a+b", "positive": "c"}, {"text": 1, "label": 2}, {"text": "t", "label": "c++"}):
        assert one_label_each(single) == [single]


def test_parse_columns() -> None:
    assert parse_columns("anchor=title, positive = my body") == {"anchor": "title", "positive": "my body"}
    assert parse_columns("text=2") == {"text": 2}
    assert ShapeRequest(columns=parse_columns("text=2")).by_number
    assert not ShapeRequest(columns=parse_columns("text=body")).by_number
    for wrong in ("", "text", "text=", "=body", "text=a,text=b", "text=a,,"):
        with pytest.raises(InputError, match="columns: cannot parse"):
            parse_columns(wrong)
