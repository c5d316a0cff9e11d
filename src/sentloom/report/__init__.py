"""Results as people read them: tables, figures, files, one HTML page and a model card."""
