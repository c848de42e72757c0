"""Every attribute of every file below a folder, one line each, for two systems to be compared.

`make` fills the folder first: with one of each kind of file that an image can hold.
"""

import hashlib
import os
import stat
import sys

ROOT = b"/opt/tree"
OLD = 1_400_000_000_987_654_321
CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")  # cap_net_bind_service+ep


def write(name, content=b"x", mode=0o644, owner=(0, 0), time=1_700_000_000_123_456_789):
    path = os.path.join(ROOT, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chown(path, *owner)
    os.chmod(path, mode)
    os.utime(path, ns=(time, time))
    return path


def make():
    write(b"plain", b"plain\n")
    write(b"owned", owner=(1234, 4_000_000_000))
    write(b"setuid", mode=0o4755)
    write(b"old", time=1_500_000_000)
    write(b"empty", b"")
    write("名字 \n ünï".encode())
    write(b"\xff\xfe not text")
    write(b"/".join([b"long" * 20] * 12))
    os.setxattr(write(b"capable", mode=0o755), "security.capability", CAPABILITY)
    os.setxattr(write(b"marked"), "user.mark", b"a\0b\xff")
    os.link(write(b"one", b"linked"), ROOT + b"/two")
    os.symlink(b"plain", ROOT + b"/link")
    os.symlink(b"/no/where\xff", ROOT + b"/dangling")
    os.mkfifo(ROOT + b"/pipe", 0o600)
    with open(write(b"sparse"), "wb") as file:
        file.seek(8 << 20)
        file.write(b"end")
    for number in range(int(sys.argv[2])):
        write(b"many/%d" % number, b"%d" % number)
    os.makedirs(ROOT + b"/sticky", 0o1777)
    os.chmod(ROOT + b"/sticky", 0o1777)
    os.setxattr(ROOT + b"/sticky", "user.mark", b"of a folder")
    os.utime(ROOT + b"/link", ns=(OLD, OLD), follow_symlinks=False)
    os.utime(ROOT + b"/many", ns=(OLD, OLD))
    # Of the image itself: one file goes, one directory is another one.
    os.remove(b"/etc/debian_version")
    for folder, folders, files in os.walk(b"/usr/share/doc", topdown=False):
        for name in files:
            os.remove(os.path.join(folder, name))
        for name in folders:
            path = os.path.join(folder, name)
            os.remove(path) if os.path.islink(path) else os.rmdir(path)
    os.rmdir(b"/usr/share/doc")
    os.makedirs(b"/usr/share/doc/new")


def tell(path):
    about = os.lstat(path)
    line = [repr(path), oct(about.st_mode), about.st_uid, about.st_gid, about.st_mtime_ns]
    if not stat.S_ISDIR(about.st_mode):
        line.append(about.st_nlink)
    if stat.S_ISREG(about.st_mode):
        with open(path, "rb") as file:
            line += [about.st_size, hashlib.sha256(file.read()).hexdigest()]
    if stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode):
        line += [(name, os.getxattr(path, name)) for name in sorted(os.listxattr(path))]
    if stat.S_ISLNK(about.st_mode):
        line.append(os.readlink(path))
    print(*line)


if sys.argv[1] == "make":
    make()
print(os.path.lexists("/etc/debian_version"), os.listdir("/usr/share/doc"))
for folder, folders, files in os.walk(ROOT):
    folders.sort()
    tell(folder)
    for name in sorted(files + [name for name in folders if os.path.islink(os.path.join(folder, name))]):
        tell(os.path.join(folder, name))
