"""An ONNX file is tried with limits; tests/attacks/test_onnx_files.py tries hostile ones."""

from sentloom.encoder.formats.onnx_probe import TOKENS, batch_shapes


def test_batches_are_as_large_as_those_that_are_encoded():
    for longest in (1, 7, 128, 512, 9000):
        shapes = batch_shapes(longest, batched=True)
        assert max(tokens for _, tokens in shapes) == min(longest, TOKENS)
        assert TOKENS / 2 < max(texts * tokens for texts, tokens in shapes) <= TOKENS
