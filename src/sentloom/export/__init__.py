"""Encoders in other forms (ONNX, CTranslate2, static vectors), each proven to give the trained model's vectors."""
