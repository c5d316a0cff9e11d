"""Data sets in the layouts of the hub."""

from pathlib import Path

import pytest


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Save data sets where the `datasets` package finds them under the hub's name, without a network."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)

    def save(repository, tables):
        """Save `tables`, which has the columns by configuration and split."""
        folder = Path(repository)
        for (configuration, split), columns in tables.items():
            (folder / configuration).mkdir(parents=True, exist_ok=True)
            datasets.Dataset.from_dict(columns).to_parquet(folder / configuration / f"{split}-00000-of-00001.parquet")
        names = dict.fromkeys(configuration for configuration, _ in tables)
        configs = "".join(
            f"- config_name: {name}\n  data_files:\n"
            + "".join(f"  - split: {split}\n    path: {name}/{split}-*\n" for one, split in tables if one == name)
            for name in names
        )
        (folder / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", encoding="utf-8")

    return save
