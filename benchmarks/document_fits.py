"""What a fit of documents alone gains on their own held-out titles, headings and links.

Run as `python -m benchmarks.document_fits FOLDER... -o RUNS [--budget 10m]`; run it again to resume. Two collections
that the package registries have:

    apt-get download postgresql-doc-15 && dpkg -x postgresql-doc-15_*.deb postgresql
    pip download --no-deps --no-binary :all: django==5.2.4 && tar xzf django-5.2.4.tar.gz
    python -m benchmarks.document_fits postgresql/usr/share/doc/postgresql-doc-15/html django-5.2.4/docs -o runs
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Fit every folder, and print what the rows were and what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("-o", "--output", required=True, type=Path)
    parser.add_argument("--budget", default="10m")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    for folder in arguments.folders:
        model = arguments.output / "-".join(folder.parts[-2:])
        call = [sys.executable, "-m", "sentloom", "fit", folder, "-o", model, "--budget", arguments.budget]
        done = subprocess.run([*map(str, call), "--writer", "none"], check=False)
        if done.returncode not in (0, 3):
            sys.exit(f"{folder}: the fit ended with code {done.returncode}")
        report = json.loads(Path(f"{model}.fit", "report.json").read_text("utf-8"))
        for source in report["sources"]:
            rows = source["rows"]
            print(f"{source['name']}: {rows['read']:,} rows, {rows['train']:,} train, {rows['test']:,} test")
        print(f"{folder}: {report['verdict']}. {report['reason']}", flush=True)


if __name__ == "__main__":
    main()
