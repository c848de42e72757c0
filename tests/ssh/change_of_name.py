"""Signs in with more than one name on a connection: `change_of_name.py INSTANCE OTHER PASSWORD`.

The packets of signing in are ours, so that they come in an order in which no client sends them. KEY and PASSWORD of the
door are one user's, OTHER and PASSWORD here another's, who has an instance of the same name.
"""

import queue
import sys

import paramiko
from paramiko.message import Message

import by_paramiko
from door import KEY, LIMIT, PASSWORD, check, login

instance, other, other_password = sys.argv[1:]
mine, theirs = login(instance), f"{other}+{instance}"
key = paramiko.Ed25519Key.from_private_key_file(KEY)
ACCEPT, REQUEST, FAILURE, SUCCESS, BANNER, ASKED, ANSWER = 6, 50, 51, 52, 53, 60, 61


class Answers:
    """Takes the place of what signs in, and passes on what comes."""

    def __init__(self):
        self.came = queue.Queue()
        self._handler_table = {kind: self.take(kind) for kind in (ACCEPT, FAILURE, SUCCESS, BANNER, ASKED)}

    def take(self, kind):
        return lambda _self, message: self.came.put(kind)

    def is_authenticated(self):
        return False

    def abort(self):
        self.came.put(None)


def begin():
    transport = by_paramiko.begin()
    transport.auth_handler = Answers()
    send(transport, 5, "ssh-userauth")
    check(answer(transport) == ACCEPT, "signing in may begin")
    return transport


def send(transport, kind, *parts):
    message = Message()
    message.add_byte(bytes([kind]))
    for part in parts:
        if isinstance(part, bool):
            message.add_boolean(part)
        elif isinstance(part, int):
            message.add_int(part)
        else:
            message.add_string(part)
    transport._send_message(message)


def answer(transport):
    """What comes next: its number, or nothing when the connection is closed."""
    return transport.auth_handler.came.get(timeout=LIMIT)


def request(transport, name, method, *parts):
    send(transport, REQUEST, name, "ssh-connection", method, *parts)
    return answer(transport)


def signed(transport, signed_for, sent_as):
    blob = Message()
    blob.add_string(transport.session_id)
    blob.add_byte(bytes([REQUEST]))
    for part in (signed_for, "ssh-connection", "publickey"):
        blob.add_string(part)
    blob.add_boolean(True)
    blob.add_string("ssh-ed25519")
    blob.add_string(key.asbytes())
    signature = key.sign_ssh_data(blob.asbytes())
    return request(transport, sent_as, "publickey", True, "ssh-ed25519", key.asbytes(), signature.asbytes())


def who(transport):
    """In whose instance a command runs now."""
    channel = transport.open_session()
    channel.exec_command("cat /userhome/whose")
    return channel.makefile().read().decode()


# A question that was asked of one user is not answered by another.
for between in (lambda t: request(t, mine, "none"), lambda t: request(t, mine, "password", False, "wrong")):
    transport = begin()
    check(request(transport, theirs, "keyboard-interactive", "", "") == ASKED, "it asks")
    check(between(transport) == FAILURE, "another name is refused")
    send(transport, ANSWER, 1, other_password)
    check(answer(transport) in (FAILURE, None), "an answer to a question that is over opens nothing")
    transport.close()

# A key that was shown for one user is no proof for another, and what counts is what was proved last.
transport = begin()
check(request(transport, mine, "publickey", False, "ssh-ed25519", key.asbytes()) == ASKED, "the key is known")
check(request(transport, theirs, "publickey", False, "ssh-ed25519", key.asbytes()) == FAILURE, "not for another")
check(signed(transport, mine, theirs) == FAILURE, "a signature is for the name that it was made for")
check(signed(transport, theirs, mine) == FAILURE, "both ways")
check(request(transport, theirs, "password", False, other_password) == SUCCESS, "a password lets its own user in")
check(who(transport) == other, f"in the instance of who proved it: {who(transport)!r}")
transport.close()

# And the other way round: a right password of nobody here, then a key.
transport = begin()
check(request(transport, theirs, "password", False, PASSWORD) == FAILURE, "one user's password is not another's")
check(request(transport, theirs, "keyboard-interactive", "", "") == ASKED, "it asks")
check(signed(transport, mine, mine) == SUCCESS, "a key lets its own user in")
check(who(transport) != other, "in the instance of who proved it")
transport.close()
