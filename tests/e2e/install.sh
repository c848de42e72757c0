#!/bin/sh
# A package for dpkg and one for pip, made here so that no network is needed.
set -e
mkdir -p /tmp/deb/DEBIAN
printf 'Package: small-tool\nVersion: 2.0\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: small\n' \
  >/tmp/deb/DEBIAN/control
dpkg-deb --build /tmp/deb /tmp/small.deb >/dev/null
dpkg -i /tmp/small.deb >/dev/null
python3 - <<'END'
import zipfile
info = 'smallwheel-1.5.dist-info'
with zipfile.ZipFile('/tmp/smallwheel-1.5-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('smallwheel.py', '')
    wheel.writestr(f'{info}/METADATA', 'Metadata-Version: 2.1\nName: smallwheel\nVersion: 1.5\n')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(f'{info}/RECORD', f'smallwheel.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n')
END
PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-index --no-deps \
  /tmp/smallwheel-1.5-py3-none-any.whl
