"""Certificates for tests, made by the openssl program: an authority, and what it signs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from devtools import parts

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")  # made much faster than one of RSA


class Authority:
    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._name = name
        self._openssl = parts.need("openssl")
        self.certificate = directory / f"{name}.pem"
        self._key = directory / f"{name}.key"
        self._run("req", "-x509", *NEW_KEY, "-nodes", "-days", "2", "-subj", f"/CN={name}",
                  "-keyout", str(self._key), "-out", str(self.certificate))  # fmt: skip

    def sign(
        self, name: str, subject: str, *, password: str = "", hosts: str = "IP:127.0.0.1,DNS:localhost", days: int = 2
    ) -> Path:
        """A PEM file with a private key and its certificate; with less than 0 days it has expired."""
        place = self._directory / name
        request, key, extensions = place.with_suffix(".csr"), place.with_suffix(".key"), place.with_suffix(".ext")
        extensions.write_text(f"subjectAltName={hosts}\n")
        hidden = ["-passout", f"pass:{password}"] if password else ["-nodes"]
        self._run(
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            *hidden,
            "-subj",
            subject,
            "-keyout",
            str(key),
            "-out",
            str(request),
        )
        signed = place.with_suffix(".crt")
        self._run("x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self._key),
                  "-CAcreateserial", "-days", str(days), "-extfile", str(extensions), "-out", str(signed))  # fmt: skip
        both = place.with_suffix(".pem")
        both.write_text(key.read_text() + signed.read_text())
        return both

    def _run(self, *arguments: str) -> None:
        subprocess.run([self._openssl, *arguments], check=True, capture_output=True)
