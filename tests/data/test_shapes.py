from sentloom.data.shapes import Shape, text_columns


def test_every_shape_has_text_columns_without_score_and_label() -> None:
    assert all(text_columns(shape) for shape in Shape)
    assert text_columns(Shape.SCORED_PAIRS) == ("sentence1", "sentence2")
    assert text_columns(Shape.NLI) == ("premise", "hypothesis")
    assert text_columns(Shape.TRIPLETS) == ("anchor", "positive", "negatives")
