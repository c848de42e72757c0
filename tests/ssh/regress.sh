#!/bin/sh
# shellcheck disable=SC2034,SC2317
# Runs one of OpenSSH's own tests against a server that is there already:
# `regress.sh SUITE OBJ TEST LAPTOP USER@HOST PORT`. The suite brings what starts an
# sshd; this stands in for it, with the names that the tests use.
suite=$1/usr/lib/openssh/regress
OBJ=$2
tid=$3
laptop=$4
address=$5
PORT=$6
SRC=$suite
SCRIPT=$suite/$tid.sh
SSH=/usr/bin/ssh
SFTP=/usr/bin/sftp
EXEEXT=
DATANAME=data
DATA=$OBJ/$DATANAME
COPY=$OBJ/copy
RESULT=0
export SRC
# Folders that are made on this side are written to from the other, by whoever the image's user is.
umask 000

cat >"$OBJ/ssh_proxy" <<END
Host *
  HostName 127.0.0.1
  User ${address%@*}
  Port $PORT
  HostKeyAlias [127.0.0.1]:$PORT
  UserKnownHostsFile $laptop/known_hosts
  GlobalKnownHostsFile /dev/null
  IdentityFile $laptop/key
  IdentitiesOnly yes
  IdentityAgent none
  BatchMode yes
  StrictHostKeyChecking yes
END
cp "$OBJ/ssh_proxy" "$OBJ/ssh_config"
cp "$OBJ/ssh_proxy" "$OBJ/ssh_config_config"
# An SFTP server on standard input and output, which is ours on the other side.
SFTPSERVER=$OBJ/sftp-server
cat >"$SFTPSERVER" <<END
#!/bin/sh
exec $SSH -q -F $OBJ/ssh_proxy -s somehost sftp
END
chmod 755 "$SFTPSERVER"
# What they copy around: of a size that no packet divides.
head -c 300007 /bin/bash >"$DATA"

trace() { :; }
verbose() { :; }
fail() {
  RESULT=1
  echo "FAIL: $*"
}
fatal() {
  fail "$@"
  exit 1
}
skip() {
  echo "SKIPPED: $*"
  exit 1
}
config_defined() { return 1; }

cd "$OBJ" || exit 1
# shellcheck disable=SC1090
. "$SCRIPT"
exit $RESULT
