"""Turn raw text into labelled triplets: one text-to-text model writes and judges (GenSE, Chen et al., 2022)."""
