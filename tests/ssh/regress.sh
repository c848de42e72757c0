#!/bin/sh
# shellcheck disable=SC2034,SC2317
# Runs one of OpenSSH's own tests against a server that is there already:
# `regress.sh SUITE OBJ TEST LAPTOP USER@HOST PORT`. The suite brings what starts an
# sshd; this stands in for it, with the names that the tests use.
theirs=$1/usr/lib/openssh/regress
OBJ=$2
test=$3
laptop=$4
login=${5%@*}
PORT=$6
# In an address of the kind ssh://USER@HOST a plus sign is a space; the key tells who it is.
USER=${login#*+}
LOGNAME=$(id -un)

SRC=$OBJ/suite
SCRIPT=$SRC/$test.sh
REAL_SSH=/usr/bin/ssh
SSH=$OBJ/ssh
SSHD=$OBJ/sshd
SFTP=/usr/bin/sftp
SCP=/usr/bin/scp
SSHKEYGEN=ssh-keygen
SSHKEYSCAN=ssh-keyscan
SSHAGENT_BIN=/usr/bin/ssh-agent
PLINK=/usr/bin/plink
NC=$OBJ/netcat
EXEEXT=
SUDO=
SSH_KEYTYPES=ssh-ed25519
SSH_HOSTKEY_TYPES=ssh-ed25519
TEST_SSH_LOGFILE=$OBJ/ssh.log
TEST_SSHD_LOGFILE=$OBJ/sshd.log
TEST_REGRESS_LOGFILE=$OBJ/regress.log
DATANAME=data
DATA=$OBJ/$DATANAME
COPY=$OBJ/copy
RESULT=0
REGRESS_INTEROP_PUTTY=yes
export SRC OBJ SSH REAL_SSH SCP
# Folders that are made on this side are written to from the other, by whoever the image's user is.
umask 000

# The suite, with what stands for its own server.
mkdir -p "$SRC"
ln -sf "$theirs"/* "$SRC"
ln -sf "$theirs/netcat" "$theirs/modpipe" "$theirs/mkdtemp" "$OBJ"
: >"$OBJ/sshd_config"
: >"$OBJ/sshd_proxy"
: >"$TEST_SSH_LOGFILE"

# Says of algorithms only what this server offers too, and writes its log where the tests look for it.
cat >"$SSH" <<END
#!/bin/sh
case "\$1 \$2" in
"-Q kex") echo curve25519-sha256; echo curve25519-sha256@libssh.org ;;
"-Q cipher" | "-Q Ciphers") printf '%s\n' aes128-ctr aes192-ctr aes256-ctr aes128-gcm@openssh.com aes256-gcm@openssh.com chacha20-poly1305@openssh.com ;;
"-Q cipher-auth") printf '%s\n' aes128-gcm@openssh.com aes256-gcm@openssh.com chacha20-poly1305@openssh.com ;;
"-Q mac" | "-Q MACs") printf '%s\n' hmac-sha2-256-etm@openssh.com hmac-sha2-512-etm@openssh.com ;;
"-Q "*) exec $REAL_SSH "\$@" ;;
*)
  for one in "\$@"; do
    shift
    [ "\$one" = -q ] || set -- "\$@" "\$one"
  done
  exec $REAL_SSH -E $TEST_SSH_LOGFILE "\$@"
  ;;
esac
END
# A server on standard input and output, and one for SFTP alone: ours on the other side.
cat >"$SSHD" <<END
#!/bin/sh
exec $NC -N 127.0.0.1 $PORT
END
SFTPSERVER=$OBJ/sftp-server
cat >"$SFTPSERVER" <<END
#!/bin/sh
exec $REAL_SSH -q -F $OBJ/ssh_sftp -s somehost sftp
END
# The old scp: theirs runs the other side here, and knows servers that misbehave; ours runs it there.
rm -f "$SRC/scp-ssh-wrapper.sh"
cat >"$SRC/scp-ssh-wrapper.sh" <<END
#!/bin/sh
case "\$SCPTESTMODE" in
badserver_*) exec sh $theirs/scp-ssh-wrapper.sh "\$@" ;;
*) exec $REAL_SSH -F $OBJ/ssh_sftp "\$@" ;;
esac
END
chmod 755 "$SSH" "$SSHD" "$SFTPSERVER" "$SRC/scp-ssh-wrapper.sh"

sed "s/^[^ ]*/localhost-with-alias,127.0.0.1,::1/" "$laptop/known_hosts" >"$OBJ/known_hosts"
cp "$OBJ/known_hosts" "$OBJ/known_hosts_kept"
# With tabs: some tests take lines out by them.
configuration() {
  cat <<END
Host *
	Hostname		127.0.0.1
	HostKeyAlias		localhost-with-alias
	Port			$PORT
	User			$login
	GlobalKnownHostsFile	$OBJ/$1
	UserKnownHostsFile	$OBJ/$1
	IdentityFile		$laptop/key
	IdentitiesOnly		yes
	IdentityAgent		none
	BatchMode		yes
	StrictHostKeyChecking	yes
$2
END
}
configuration known_hosts "	LogLevel		DEBUG3" >"$OBJ/ssh_config"
cp "$OBJ/ssh_config" "$OBJ/ssh_config_config"
configuration known_hosts_kept "" >"$OBJ/ssh_sftp"
{
  cat "$OBJ/ssh_config"
  echo "proxycommand $SSHD"
} >"$OBJ/ssh_proxy"
# What they copy around: of a size that no packet divides.
head -c 300007 /bin/bash >"$DATA"

case $test in
# Variables that are let through have other names here, and who does not speak SSH is told less.
multiplex)
  rm -f "$SCRIPT"
  sed -e 's/_XXX_TEST/LC_XXX_TEST/g' -e 's/Invalid SSH identification string/SSH-2.0-Berth/' \
    "$theirs/$test.sh" >"$SCRIPT"
  ;;
# Up to where it sets up a server that asks for new keys itself.
rekey)
  rm -f "$SCRIPT"
  awk '/verbose "server rekeylimit/ { exit } NR > 1 { print held } { held = $0 }' "$theirs/$test.sh" >"$SCRIPT"
  ;;
putty-*)
  PUTTYDIR=$OBJ/.putty
  export PUTTYDIR
  mkdir -p "$PUTTYDIR/sessions"
  puttygen "$laptop/key" -o "$OBJ/putty.rsa2"
  fingerprint=$(ssh-keygen -l -f "$OBJ/known_hosts_kept" | cut -d' ' -f2)
  cat >"$PUTTYDIR/sessions/localhost_proxy" <<END
Protocol=ssh
HostName=127.0.0.1
PortNumber=$PORT
UserName=$login
SSHManualHostKeys=$fingerprint
END
  ;;
esac

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
config_defined() { [ "$1" = HAVE_STRUCT_IN6_ADDR ]; }
start_sshd() { :; }
maybe_add_scp_path_to_sshd() { :; }
make_tmpdir() { SSH_REGRESS_TMP=$(mktemp -d); }
jot() { seq "$2" $(($2 + $1 - 1)); }
increase_datafile_size() {
  while [ "$(du -k "$DATA" | cut -f1)" -lt "$1" ]; do
    cat "$SSHAGENT_BIN" >>"$DATA"
  done
}

cd "$OBJ" || exit 1
# shellcheck disable=SC1090
. "$SCRIPT"
rm -rf "$SSH_REGRESS_TMP"
exit $RESULT
