"""Times refused sign-ins with names that exist and names that do not: tries.py PORT SSH_PORT ADMIN_TOKEN TRIES."""

import http.client
import itertools
import json
import socket
import statistics
import sys
import time

import paramiko

# A name and an address may guess wrongly ten times a minute: nine of each, and every address of 127/8 is ours.
EACH = 9
MOST = 0.05

port, ssh_port, token, tries = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
addresses = (f"127.{a}.{b}.{c}" for a in range(1, 255) for b in range(1, 255) for c in range(1, 255))
sources = itertools.chain.from_iterable(itertools.repeat(address, EACH) for address in addresses)


def ask(method, path, body, source=None, headers=()):
    address = (source, 0) if source else None
    connection = http.client.HTTPConnection("127.0.0.1", port, source_address=address)
    connection.connect()
    begin = time.perf_counter()
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json", **dict(headers)})
    answer = connection.getresponse()
    answer.read()
    taken = time.perf_counter() - begin
    connection.close()
    return answer.status, taken


def by_api(name, source):
    body = {"user": name, "password": "not the password", "client": "cli"}
    status, taken = ask("POST", "/api/v1/session", body, source)
    assert status == 401, f"{name}: {status}"
    return taken


def by_ssh(name, source):
    connection = socket.create_connection(("127.0.0.1", ssh_port), source_address=(source, 0))
    transport = paramiko.Transport(connection)
    try:
        transport.start_client(timeout=20)
        begin = time.perf_counter()
        try:
            transport.auth_password(f"{name}+train", "not the password", fallback=False)
        except paramiko.AuthenticationException:
            return time.perf_counter() - begin
        sys.exit(f"error: {name} got in")
    finally:
        transport.close()


def compare(what, knock):
    count = tries // 2
    names = -(-count // EACH)
    known = [f"{what}-known-{n:04}" for n in range(names)]
    for name in known:
        status, _ = ask("POST", "/api/v1/users", {"name": name}, headers={"Authorization": f"Bearer {token}"})
        assert status == 201, f"adding {name}: {status}"
    taken = {"known": [], "unknown": []}
    for n in range(count):
        # Each goes first as often as the other.
        for kind in ("known", "unknown") if n % 2 else ("unknown", "known"):
            taken[kind].append(knock(f"{what}-{kind}-{n // EACH:04}", next(sources)))
    medians = {kind: statistics.median(times) for kind, times in taken.items()}
    apart = abs(medians["known"] / medians["unknown"] - 1)
    shown = ", ".join(f"{kind} {1000 * median:.2f} ms" for kind, median in medians.items())
    print(f"{what}: {2 * count} tries, medians: {shown}; {100 * apart:.2f} % apart", flush=True)
    return apart < MOST


sys.exit(0 if all([compare("api", by_api), compare("ssh", by_ssh)]) else "error: the time tells who exists")
