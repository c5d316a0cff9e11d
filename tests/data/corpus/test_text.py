"""Docstrings of every style, written for these tests, and the prose they contain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentloom.data.corpus.prose import MAX_WORDS, MIN_WORDS, plain, read_docstring, split_sentences

NUMPYDOC = """
    Weigh every apple in the basket and
    return the total.

    The scale is set to zero first.  Stones do
    not count [1]_.

    Parameters
    ----------
    basket : list of Apple
        The apples that are put on the scale.
    unit : {'kg', 'lb'}
        This sentence belongs to a parameter list.

    Returns
    -------
    float
        The sum of all the weights.

    Notes
    -----
    A basket may hold up to ten apples:

    ======  =====
    Basket  Count
    ======  =====
    A small one.  3
    ======  =====

    Each of them is weighed on its own.

    Examples
    --------
    We begin with an empty basket here.

    >>> weigh([])
    This Output Looks Like Prose.

    Then some apples are added to it.

    References
    ----------
    .. [1] A. Author. This is not a sentence of ours.
    """

GOOGLE = """Fetches rows from a table.

    Retrieves what belongs to the given keys, if
    anything does.

    Args:
        keys: A sequence of strings that name the rows.
        strict (bool): Whether it is an error to find nothing.
            That line goes on here.

    Returns:
        A mapping from keys to the rows that were found.

    Note:
        Keys are compared byte by byte.

        Missing rows are simply left out.

    The table is locked in the meantime.

    Example:
        code = fetch(table) that is not prose.
    """

RST = """Open the gate.

    The handle is turned twice, as in::

        gate.turn()
        This is code, however it looks.

    After this the gate stands open.

    .. note::

        Close the gate when you leave.

    .. warning:: Never leave the gate
       open during the night.

    .. versionadded:: 1.2
        This text belongs to the directive.

    .. math::

        e = mc squared is a formula here.

    :param handle: The handle that is to be turned.
    :returns: Nothing of any use is returned.

    - A short item without end
    - This item is a whole sentence.
    - This one is broken over
      two lines of text.

    ```python
    This is fenced code in Markdown.
    ```

    > [!TIP]
    > Quoted text is read like any other.

    @deprecated This line is a field too.
    """


def sentences(docstring):
    return list(read_docstring(docstring).sentences)


def test_numpydoc():
    assert read_docstring(NUMPYDOC).summary == "Weigh every apple in the basket and return the total."
    assert sentences(NUMPYDOC) == [
        "Weigh every apple in the basket and return the total.",
        "The scale is set to zero first.",
        "Stones do not count.",
        "Each of them is weighed on its own.",
        "We begin with an empty basket here.",
        "Then some apples are added to it.",
    ]


def test_google():
    assert read_docstring(GOOGLE).summary == "Fetches rows from a table."
    assert sentences(GOOGLE) == [
        "Fetches rows from a table.",
        "Retrieves what belongs to the given keys, if anything does.",
        "Keys are compared byte by byte.",
        "Missing rows are simply left out.",
        "The table is locked in the meantime.",
    ]


def test_restructured_text_and_markdown():
    assert sentences(RST) == [
        "After this the gate stands open.",
        "Close the gate when you leave.",
        "Never leave the gate open during the night.",
        "This item is a whole sentence.",
        "This one is broken over two lines of text.",
        "Quoted text is read like any other.",
    ]


@pytest.mark.parametrize(
    ("docstring", "summary"),
    [
        ("Open the gate", "Open the gate"),
        ("open the gate.", "open the gate."),
        ("open(gate, wide=True) -> bool\n\nOpen the gate widely.", "Open the gate widely."),
        ("Return the gate.  Then close it.", "Return the gate."),
        ("First line of it\n\n    Second paragraph here.", "First line of it"),
        ("Gates and doors\n===============\n\nThis is not a summary line.", None),
        ("\n    gate (`Gate`):\n        The gate that is opened.", None),
        ("Note: This is a note before anything.", None),
        ("- A list comes first here.", None),
        ("The gates are these:", None),
        ("Two words", None),
        (">>> gate.open()", None),
        ("", None),
    ],
)
def test_summary(docstring, summary):
    assert read_docstring(docstring).summary == summary


def test_a_hyphenated_word_across_lines_is_joined():
    assert (
        read_docstring("Numbers are zero-\nbased, here - and\nthere.").summary
        == "Numbers are zero-based, here - and there."
    )


def test_a_deliberate_line_break_ends_a_unit():
    assert read_docstring("Base class of gates\nSubclasses say how to open.").summary == "Base class of gates"
    wrapped = "Return the gate of the garden that is nearest to the\nHouse of the owner."
    assert read_docstring(wrapped).summary == wrapped.replace("\n", " ")


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("Use :func:`open` here", "Use open here"),
        ("Use :class:`~garden.gates.Gate` here", "Use Gate here"),
        ("Use :py:meth:`garden.Gate.open` here", "Use garden.Gate.open here"),
        ("See the :ref:`User Guide <gates>` for it", "See the User Guide for it"),
        ("A `link <https://example.org>`_ to it", "A link to it"),
        ("A [link](https://example.org/a) to it", "A link to it"),
        ("A [`~garden.Gate`] or ``None``", "A Gate or None"),
        ("Very *important*, **bold** text", "Very important, bold text"),
        ("Multiply a*b*c and 2 * 3", "Multiply a*b*c and 2 * 3"),
        ("The `source' is quoted", "The source is quoted"),
        ("A graph of $n$ nodes", "A graph of n nodes"),
        ("It was shown before [1]_, as in [2]_.", "It was shown before, as in [2]_."),
        ("  many   spaces\there ", "many spaces here"),
    ],
)
def test_inline_markup(marked, text):
    assert plain(marked) == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One is here. Two is there.", ["One is here.", "Two is there."]),
        ("Is it? Yes! It is.", ["Is it?", "Yes!", "It is."]),
        ("Use a mark, e.g. Comma, i.e. This one.", ["Use a mark, e.g. Comma, i.e. This one."]),
        ("See Smith et al. The proof is there.", ["See Smith et al. The proof is there."]),
        ("By J. Smith. It works.", ["By J. Smith.", "It works."]),
        ("Version 1.2 is out. 3 bugs are left.", ["Version 1.2 is out.", "3 bugs are left."]),
        ("Call numpy.sum for it. (It is fast.) Then stop.", ["Call numpy.sum for it.", "(It is fast.)", "Then stop."]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
    ],
)
def test_sentence_splitting(text, parts):
    assert list(split_sentences(text)) == parts


@pytest.mark.parametrize(
    "text",
    [
        "Too short here.",
        "This sentence has " + "very " * 60 + "many words.",
        "It calls f(x) and then also g(y) again.",
        "Read https://example.org for the details of it.",
        "The value \\alpha is a free parameter here.",
        "It returns a dict like {a: b} every time.",
        "THIS SOFTWARE IS PROVIDED WITHOUT ANY WARRANTY.",
        "The bracket (that opens here is never closed.",
        "The template %(name)s is filled in later.",
        "x1 + y2 - z3 * 44 / 55 - 66 + 77 is it.",
        "TODO write something about this function here.",
        "A lone surrogate \ud800 cannot be written anywhere.",
        "The bell \x07 is no part of prose.",
    ],
)
def test_what_is_not_prose_is_left_out(text):
    assert sentences(f"Begin with this plain sentence.\n\n{text}") == ["Begin with this plain sentence."]


lines = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "    ", "Parameters", "----------", "Args:", "::", ".. note::", ">>> x", "```", "- a", "|a|"]
        ),
        st.text(st.characters(codec=None), max_size=60),
    ),
    max_size=20,
).map("\n".join)


@given(lines)
def test_any_text_gives_clean_sentences(docstring):
    prose = read_docstring(docstring)
    for sentence in (*prose.sentences, *filter(None, [prose.summary])):
        sentence.encode()
        assert sentence == " ".join(sentence.split())
    assert all(MIN_WORDS <= len(sentence.split()) <= MAX_WORDS for sentence in prose.sentences)
