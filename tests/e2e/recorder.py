"""An app that shows what reached it: every request is answered with its own bytes, every WebSocket is an echo.

The WebSocket side is strict, so that the verdict on each case of the tests is the app's and nobody else's.
"""
import base64, hashlib, json, socket, struct, sys, threading

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
# A page that says what came back by WebSocket.
PAGE = b"""<!doctype html><title>echo</title><p id=said></p><script>
const socket = new WebSocket(location.origin.replace("http", "ws") + "/echo")
socket.onopen = () => socket.send("an echo")
socket.onmessage = ({ data }) => { document.getElementById("said").textContent = data }
</script>"""
# The first lines of all requests but those for this list.
SEEN = []


def exactly(stream, count):
    data = b""
    while len(data) < count:
        piece = stream.recv(min(1 << 16, count - len(data)))
        if not piece:
            raise EOFError
        data += piece
    return data


def frame(opcode, payload):
    length = len(payload)
    if length < 126:
        return bytes([0x80 | opcode, length]) + payload
    if length < 1 << 16:
        return bytes([0x80 | opcode, 126]) + struct.pack(">H", length) + payload
    return bytes([0x80 | opcode, 127]) + struct.pack(">Q", length) + payload


class Wrong(Exception):
    pass


class Begun:
    """A stream of which some was read already."""

    def __init__(self, stream, read):
        self.stream, self.read, self.sendall = stream, read, stream.sendall

    def recv(self, count):
        if not self.read:
            return self.stream.recv(count)
        piece, self.read = self.read[:count], self.read[count:]
        return piece


def close_of(payload):
    if not payload:
        return b""
    if len(payload) == 1:
        raise Wrong(1002)
    code = struct.unpack(">H", payload[:2])[0]
    if not (code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011) or 3000 <= code < 5000):
        raise Wrong(1002)
    text_of(payload[2:])
    return payload[:2]


def text_of(payload):
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError:
        raise Wrong(1007)


def echo(stream):
    kind, message = None, b""
    while True:
        first, second = exactly(stream, 2)
        last, opcode, length = first & 0x80, first & 0x0F, second & 0x7F
        if first & 0x70 or not second & 0x80 or opcode not in (0, 1, 2, 8, 9, 10):
            raise Wrong(1002)
        if opcode >= 8 and (not last or length > 125):
            raise Wrong(1002)
        if length == 126:
            length = struct.unpack(">H", exactly(stream, 2))[0]
        elif length == 127:
            length = struct.unpack(">Q", exactly(stream, 8))[0]
        mask = exactly(stream, 4)
        payload = exactly(stream, length)
        key = int.from_bytes(mask * (length // 4 + 1), "big") >> (8 * (4 - length % 4))
        payload = (int.from_bytes(payload, "big") ^ key).to_bytes(length, "big") if length else b""
        if opcode == 8:
            stream.sendall(frame(8, close_of(payload)))
            return
        if opcode == 9:
            stream.sendall(frame(10, payload))
        elif opcode in (0, 1, 2):
            if (opcode == 0) != (kind is not None):
                raise Wrong(1002)
            kind = opcode or kind
            message += payload
            if last:
                if kind == 1:
                    text_of(message)
                stream.sendall(frame(kind, message))
                kind, message = None, b""


def serve(stream):
    with stream:
        buffer = b""
        while True:
            while b"\r\n\r\n" not in buffer:
                piece = stream.recv(1 << 16)
                if not piece:
                    return
                buffer += piece
            head, buffer = buffer.split(b"\r\n\r\n", 1)
            lines = head.split(b"\r\n")
            fields = {}
            for line in lines[1:]:
                name, value = line.split(b":", 1)
                fields[name.strip().lower()] = value.strip()
            path = lines[0].split(b" ")[1]
            if path != b"/seen":
                SEEN.append(lines[0].decode("latin-1"))
            if fields.get(b"upgrade", b"").lower() == b"websocket":
                accept = base64.b64encode(hashlib.sha1(fields[b"sec-websocket-key"] + GUID).digest())
                stream.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                               b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
                if path == b"/record":
                    stream.sendall(frame(1, head))
                try:
                    echo(Begun(stream, buffer))
                except Wrong as wrong:
                    stream.sendall(frame(8, struct.pack(">H", wrong.args[0])))
                except EOFError:
                    pass
                return
            length = int(fields.get(b"content-length", b"0"))
            received = len(buffer[:length])
            body, buffer = buffer[:length], buffer[length:]
            while received < length:
                piece = stream.recv(min(1 << 16, length - received))
                if not piece:
                    return
                received += len(piece)
                if len(body) < 1 << 16:
                    body += piece
            if path.startswith(b"/zeros/"):
                size = int(path[7:])
                stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                piece = bytes(1 << 20)
                while size:
                    count = min(size, len(piece))
                    stream.sendall(piece[:count])
                    size -= count
                continue
            if path in (b"/page", b"/seen"):
                page = path == b"/page"
                text = PAGE if page else json.dumps(SEEN).encode()
                kind = b"text/html" if page else b"application/json"
                stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(text)) + text)
                continue
            text = json.dumps({"who": sys.argv[1], "head": head.decode("latin-1"), "body": len(body), "received": received}).encode()
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)


def guarded(stream):
    try:
        serve(stream)
    except OSError:
        pass


# In an instance always the same one; elsewhere one that is free.
listener = socket.create_server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 9000))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=guarded, args=(listener.accept()[0],), daemon=True).start()
