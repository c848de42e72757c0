# A screen and the session on it, until either ends: DISPLAY PORT SERVER SESSION.
display=$1 port=$2 server=$3 session=$4

"$server" ":$display" -rfbport "$port" -localhost -SecurityTypes None -AlwaysShared \
  -geometry 1440x900 -depth 24 -desktop Berth &
screen=$!
trap 'kill "$screen" 2>/dev/null' EXIT
trap 'exit 143' HUP INT TERM

until [ -S "/tmp/.X11-unix/X$display" ]; do
  if ! kill -0 "$screen" 2>/dev/null; then
    echo "the screen ended before the session began"
    exit 1
  fi
  sleep 0.1
done

export DISPLAY=":$display"
if command -v dbus-run-session >/dev/null; then
  dbus-run-session -- "$session" &
else
  "$session" &
fi
wait $!
echo "the session ended"
