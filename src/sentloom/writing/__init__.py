"""Raw text becomes labelled triplets: one text-to-text model writes and judges (GenSE, Chen et al., 2022)."""
