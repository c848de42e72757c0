"""Times refusals of names that exist and names that do not: tries.py PORT SSH_PORT ADMIN_TOKEN TRIES.

Names of accounts at sign-in, and of instances once somebody is in.
"""

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


def told(method, path, body, bearer, status):
    """What the API answers to somebody who has signed in."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {bearer}"}
    connection.request(method, path, json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == status, f"{method} {path}: {answer.status} {text}"
    return json.loads(text) if text else None


def guest():
    """Somebody with a password of their own."""
    password = told("POST", "/api/v1/users", {"name": "guest"}, token, 201)["password"]
    signed_in = told("POST", "/api/v1/session", {"user": "guest", "password": password, "client": "cli"}, "", 200)
    told("PUT", "/api/v1/me/password", {"old": password, "new": f"{password}-new"}, signed_in["token"], 204)
    return f"{password}-new"


def compare_instances():
    """Times commands for another's instance and for one that is not there, each on a connection of its own."""
    wanted = {"name": "train", "image": "localhost/berth/base:latest", "cpus": 1, "memory_bytes": 64 << 20}
    theirs = told("POST", "/api/v1/instances", wanted, token, 201)["id"]
    nobodys = theirs[:-1] + ("0" if theirs[-1] != "0" else "1")
    password, doors = guest(), {}
    for kind, name in (("foreign", theirs), ("unknown", nobodys)):
        connection = socket.create_connection(("127.0.0.1", ssh_port))
        # Else what is timed is the kernel's wait for the acknowledgement of the last command's end.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        doors[kind] = paramiko.Transport(connection)
        doors[kind].start_client(timeout=20)
        doors[kind].auth_password(f"guest+{name}", password)
    taken, answers = {"foreign": [], "unknown": []}, set()
    for n in range(tries // 2):
        for kind in ("foreign", "unknown") if n % 2 else ("unknown", "foreign"):
            begin = time.perf_counter()
            channel = doors[kind].open_session(timeout=20)
            channel.exec_command("true")
            status = channel.recv_exit_status()
            taken[kind].append(time.perf_counter() - begin)
            said = channel.makefile_stderr().read().replace(theirs.encode(), b"NAME").replace(nobodys.encode(), b"NAME")
            answers.add((status, said))
            channel.close()
    assert len(answers) == 1, f"the answers differ: {answers}"
    return is_alike("instances", taken)


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
    return is_alike(what, taken)


def is_alike(what, taken):
    one, other = (statistics.median(times) for times in taken.values())
    apart = abs(one / other - 1)
    shown = ", ".join(f"{kind} {1000 * statistics.median(times):.2f} ms" for kind, times in taken.items())
    print(f"{what}: {sum(map(len, taken.values()))} tries, medians: {shown}; {100 * apart:.2f} % apart", flush=True)
    return apart < MOST


alike = [compare("api", by_api), compare("ssh", by_ssh), compare_instances()]
sys.exit(0 if all(alike) else "error: the time tells what exists")
