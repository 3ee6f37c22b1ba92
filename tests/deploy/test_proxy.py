"""The snippets for proxies, read by the proxies, and what they rely on, asked of a server."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.cli.nodes import serving
from tests.deploy.tools import DEPLOY, run_tool, unknown_settings

NGINX = DEPLOY / "proxy" / "nginx.conf"
CADDY = DEPLOY / "proxy" / "Caddyfile"


def test_the_snippets_take_the_path_away_and_name_settings_that_exist() -> None:
    nginx, caddy = NGINX.read_text("utf-8"), CADDY.read_text("utf-8")
    assert re.search(r"location /ksana/ \{.*?proxy_pass http://ksana/;", nginx, re.DOTALL)
    assert "proxy_buffering off;" in nginx
    assert "handle_path /ksana/* {" in caddy
    assert unknown_settings(nginx + caddy) == set()


async def test_a_server_under_a_path_wants_it_taken_away(tmp_path: Path) -> None:
    async with serving(tmp_path, "--base-path", "/ksana") as node:
        status, _ = await node.call("GET", "/api/v2/version")
        kept, _ = await node.call("GET", "/ksana/api/v2/version")
    assert (status, kept) == (200, 404)


def test_nginx_accepts_its_snippet(tmp_path: Path) -> None:
    run_tool("nginx", "-v")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ("-subj", "/CN=example.com", "-days", "1", "-keyout", str(key), "-out", str(certificate))
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject)
    subprocess.run(made, check=True, capture_output=True)
    text = NGINX.read_text("utf-8").replace("/etc/ssl/certs/example.com.pem", str(certificate))
    (tmp_path / "ksana.conf").write_text(text.replace("/etc/ssl/private/example.com.key", str(key)))
    around = f"pid {tmp_path}/pid;\nerror_log {tmp_path}/error.log;\nevents {{}}\n"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    scratch = "".join(f"{kind}_temp_path {tmp_path}/{kind}; " for kind in kinds)
    inside = f"access_log off; {scratch}include {tmp_path}/ksana.conf;"
    (tmp_path / "nginx.conf").write_text(f"{around}http {{ {inside} }}\n")
    code, said = run_tool("nginx", "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf", directory=tmp_path)
    assert code == 0, said


def test_caddy_accepts_its_snippet(tmp_path: Path) -> None:
    code, said = run_tool("caddy", "validate", "--adapter", "caddyfile", "--config", CADDY, directory=tmp_path)
    assert code == 0, said
