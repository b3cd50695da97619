#!/bin/sh
# Runs claude-mem from its npm package. If that is missing, npm fetches it into the folder of the plugin. Hooks do not
# wait for it, the MCP server does.
package=@PACKAGE@
version=@VERSION@
here=${0%/*}

run() {
  for binary in "$here/npm/node_modules/$package"-*/bin/claude-mem; do
    [ ! -x "$binary" ] || exec "$binary" "$@"
  done
}

# One npm at a time: a folder is the lock. A lock that is ten minutes old was left by a killed process.
fetch() {
  lock=$here/npm/lock
  mkdir -p "$here/npm"
  [ -z "$(find "$lock" -maxdepth 0 -mmin +10 2>/dev/null)" ] || rmdir "$lock"
  if mkdir "$lock" 2>/dev/null; then
    npm install --silent --no-audit --no-fund --prefix "$here/npm" "$package@$version"
    rmdir "$lock"
  else
    while [ -d "$lock" ]; do sleep 1; done
  fi
}

run "$@"
case ${1-} in
  mcp)
    fetch >/dev/null 2>&1 </dev/null
    run "$@"
    echo "claude-mem: npm could not fetch $package@$version" >&2
    exit 1
    ;;
  context)
    fetch >/dev/null 2>&1 </dev/null &
    echo '{"continue":true,"suppressOutput":true,"systemMessage":"claude-mem: npm is fetching the program; this session is recorded once it is there"}'
    ;;
  *) echo '{"continue":true,"suppressOutput":true}' ;;
esac
