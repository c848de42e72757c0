"""The first packets of a client, made by hand: what is sent before anything is encrypted."""

import struct


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack(">I", len(value)) + value


LISTS = (
    "curve25519-sha256,kex-strict-c-v00@openssh.com,ext-info-c",
    "ssh-ed25519",
    *("chacha20-poly1305@openssh.com,aes128-gcm@openssh.com,aes128-ctr",) * 2,
    *("hmac-sha2-256-etm@openssh.com",) * 2,
    *("none,zlib@openssh.com",) * 2,
    *("",) * 2,
)
KEX_INIT = b"\x14" + bytes(16) + b"".join(text(names) for names in LISTS) + b"\0" + bytes(4)
KEX_ECDH = b"\x1e" + text(bytes(range(32)))
NEW_KEYS = b"\x15"
IGNORE = b"\x02" + text(b"x" * 40)


def framed(payload):
    padding = 8 - (5 + len(payload)) % 8
    padding += 8 if padding < 4 else 0
    return struct.pack(">IB", 1 + len(payload) + padding, padding) + payload + bytes(padding)
