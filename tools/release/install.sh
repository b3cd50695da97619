#!/bin/sh
# Installs claude-mem @VERSION@ below ~/.local: downloads the archive for this machine, checks its SHA-256, and copies
# the binary, manual pages and completions. Run it again to upgrade. Needs no root, compiler or Node.
#
#   sh install.sh [--from ADDRESS_OR_FOLDER] [--prefix FOLDER]
set -eu

version=@VERSION@
from=@URL@
prefix=${HOME:+$HOME/.local}
usage='sh install.sh [--from ADDRESS_OR_FOLDER] [--prefix FOLDER]'
offline='check your network, or download the files elsewhere and pass their folder: sh install.sh --from FOLDER'

fail() {
  printf 'error: %s\n' "$1" >&2
  [ -z "${2-}" ] || printf 'hint: %s\n' "$2" >&2
  exit 1
}

# The Rust name of this machine.
target() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64 | Linux-amd64) echo x86_64-unknown-linux-gnu ;;
    Linux-aarch64 | Linux-arm64) echo aarch64-unknown-linux-gnu ;;
    Darwin-x86_64) echo x86_64-apple-darwin ;;
    Darwin-arm64) echo aarch64-apple-darwin ;;
    MINGW* | MSYS* | CYGWIN*) fail "this script is for Linux and macOS" "unpack the .zip, or run \`npx claude-mem install\`" ;;
    *) fail "there is no binary for $(uname -s) on $(uname -m)" "build it with Rust, as the README describes" ;;
  esac
}

fetch() {
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null 2>&1; then
        curl -fsSL -o "$work/$1" "$from/$1" || fail "cannot download $from/$1" "$offline"
      elif command -v wget >/dev/null 2>&1; then
        wget -qO "$work/$1" "$from/$1" || fail "cannot download $from/$1" "$offline"
      else
        fail "neither curl nor wget is installed" "$offline"
      fi
      ;;
    *) cp "$from/$1" "$work/$1" 2>/dev/null || fail "there is no $1 in $from" ;;
  esac
}

sha256() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1"
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1"
  else
    fail "neither sha256sum nor shasum is installed" "without one, the download cannot be checked"
  fi
}

# copy FILE TO: creates the folder, and replaces a file that is in use.
copy() {
  mkdir -p "${2%/*}"
  cp "$1" "$2.new"
  mv -f "$2.new" "$2"
}

main() {
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) printf 'Usage: %s\n' "$usage" && exit 0 ;;
      --from) from=${2-} && shift ;;
      --prefix) prefix=${2-} && shift ;;
      *) fail "unknown option $1" "$usage" ;;
    esac
    [ $# -gt 0 ] || fail "an option has no value" "$usage"
    shift
  done
  [ -n "$prefix" ] || fail "HOME is not set" "name a folder with --prefix"
  [ -n "$from" ] || fail "it is not known where to download from" "$usage"
  name=claude-mem-v$version-$(target)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  fetch SHA256SUMS
  fetch "$name.tar.gz"
  expected=$(sed -n "s/^\([0-9a-f]*\)  *[*]\{0,1\}$name\.tar\.gz\$/\1/p" "$work/SHA256SUMS")
  found=$(sha256 "$work/$name.tar.gz")
  [ -n "$expected" ] || fail "SHA256SUMS does not list $name.tar.gz" "nothing was installed; they are of different releases"
  if [ "${found%% *}" != "$expected" ]; then
    fail "$name.tar.gz has another checksum than SHA256SUMS" "nothing was installed; download it again"
  fi
  tar -C "$work" -xzf "$work/$name.tar.gz" || fail "$name.tar.gz cannot be unpacked" "nothing was installed"
  unpacked=$work/$name
  "$unpacked/claude-mem" --version >/dev/null || fail "the binary does not run on this machine" "nothing was installed"

  before=$("$prefix/bin/claude-mem" --version 2>/dev/null || true)
  copy "$unpacked/claude-mem" "$prefix/bin/claude-mem"
  for page in "$unpacked"/man/*.1; do copy "$page" "$prefix/share/man/man1/${page##*/}"; done
  copy "$unpacked/completions/claude-mem.bash" "$prefix/share/bash-completion/completions/claude-mem"
  copy "$unpacked/completions/claude-mem.zsh" "$prefix/share/zsh/site-functions/_claude-mem"
  copy "$unpacked/completions/claude-mem.fish" "$prefix/share/fish/vendor_completions.d/claude-mem.fish"
  printf '✓ claude-mem %s in %s\n' "$version" "$prefix/bin"
  [ -z "$before" ] || printf '  it replaces %s; your memories stay\n' "$before"
  case ":${PATH:-}:" in
    *":$prefix/bin:"*) program=claude-mem ;;
    *)
      program=$prefix/bin/claude-mem
      printf 'note: %s is not on your PATH; add this line to ~/.profile, or to the file that your shell reads:\n' "$prefix/bin"
      printf '  export PATH="%s:$PATH"\n' "$prefix/bin"
      ;;
  esac
  printf 'Next: set it up in your coding agents with\n  %s install\n' "$program"
}

# The whole script is read before anything is done, so that half a download does nothing.
main "$@"
