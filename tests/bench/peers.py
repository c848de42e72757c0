"""The proxies that Berth is measured against, each as its own documentation would have it for this work: connections to
the app are kept, each request is in an access log, as many workers as cores."""

import os
import pathlib

from servers import Server, free_port, listens, wait_for

CACHE = pathlib.Path(os.environ.get("BERTH_CACHE", pathlib.Path.home() / ".cache/berth")) / "bench"
CORES = os.cpu_count()

NGINX = """
worker_processes {cores};
pid {folder}/nginx.pid;
error_log {folder}/error.log;
daemon off;
user root;
events {{ worker_connections 20000; }}
http {{
  access_log {folder}/access.log combined;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_max_body_size 0;
  keepalive_requests 1000000;
  upstream app {{ server 127.0.0.1:{app}; keepalive 128; keepalive_requests 1000000; }}
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  server {{
    listen 127.0.0.1:{port} reuseport;
    location / {{
      proxy_pass http://app;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_read_timeout 1h;
      {tuning}
    }}
  }}
}}
"""

# For large bodies; the defaults spend three times the CPU on them.
TUNED = "proxy_buffer_size 64k; proxy_buffers 8 128k; proxy_busy_buffers_size 256k; proxy_request_buffering off;"

HAPROXY = """
global
  nbthread {cores}
  maxconn 9000
  log {folder}/log.sock local0
defaults
  mode http
  option httplog
  log global
  option http-keep-alive
  timeout connect 5s
  timeout client 1h
  timeout server 1h
frontend in
  bind 127.0.0.1:{port}
  default_backend app
backend app
  http-reuse always
  option forwardfor
  server app 127.0.0.1:{app}
"""


def nginx(folder, app_port, name="nginx", tuning=""):
    folder = pathlib.Path(folder) / name
    folder.mkdir()
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(cores=CORES, folder=folder, app=app_port, port=port, tuning=tuning))
    server = Server(name, ["nginx", "-c", str(config), "-p", str(folder)], folder / "log")
    return ready(server, port)


def haproxy(folder, app_port):
    folder = pathlib.Path(folder) / "haproxy"
    folder.mkdir()
    port = free_port()
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(cores=CORES, folder=folder, app=app_port, port=port))
    server = Server("haproxy", ["haproxy", "-db", "-q", "-f", str(config)], folder / "log")
    return ready(server, port)


def configurable_http_proxy(folder, app_port):
    folder = pathlib.Path(folder) / "chp"
    folder.mkdir()
    port = free_port()
    program = sorted(CACHE.glob("chp-*/node_modules/.bin/configurable-http-proxy"))[-1]
    command = [str(program), "--ip", "127.0.0.1", "--port", str(port), "--api-ip", "127.0.0.1"]
    command += ["--api-port", str(free_port()), "--default-target", f"http://127.0.0.1:{app_port}"]
    server = Server("chp", command, folder / "log", {"CONFIGPROXY_AUTH_TOKEN": "bench"})
    return ready(server, port)


def app(folder, load):
    """The same app as in the instance, on this machine: what the peers lead to."""
    port = free_port()
    server = Server("app", [str(load), "serve", f"127.0.0.1:{port}"], pathlib.Path(folder) / "app.log")
    return ready(server, port)


def ready(server, port):
    try:
        wait_for(f"{server.name} listens", lambda: server.alive() and listens(port)())
    except BaseException:
        server.stop()
        raise
    server.port = port
    return server
