# Shared by the scripts of this folder; sourced, never run.
# shellcheck shell=bash

interop=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$interop/../.." && pwd)

# Cargo reads a relative CARGO_TARGET_DIR from the folder it is started in; here that is always the root.
target=${CARGO_TARGET_DIR:-target}
[[ $target == /* ]] || target=$root/$target
cache=$target/interop
mkdir -p "$cache"

note() { printf '# %s\n' "$*" >&2; }
die() {
  printf 'interop: %s\n' "$*" >&2
  exit 1
}

# Prints the path of a program of tests/: in the folder MINIKEEPER_TEST_PROGRAMS, or built here. A debug build is fast
# enough: third-party servers and clients take most of the time.
test_program() {
  local programs=${MINIKEEPER_TEST_PROGRAMS-}
  if [[ ! $programs ]]; then
    (cd "$root" && quietly cargo build --quiet -p minikeeper-tests --bin "$1")
    programs=$target/debug
  fi
  [[ -x $programs/$1 ]] || die "no program at $programs/$1"
  realpath "$programs/$1"
}

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

# Installs the missing Debian packages. Fetches the package lists only if one is missing, so that a machine with all
# packages needs no network.
apt_need() {
  local package missing=() log=$cache/apt.log
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  note "installing Debian packages: ${missing[*]}"
  {
    # apt-get waits for another process that installs, but not for one that updates the lists.
    flock 9
    as_root apt-get -o DPkg::Lock::Timeout=300 update -q
    as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends "${missing[@]}"
  } >"$log" 2>&1 </dev/null 9>"$target/apt.lock" || {
    tail -n 20 "$log" >&2
    die "cannot install ${missing[*]}; the last lines of apt-get are above"
  }
}

# Runs a command quietly, and prints the end of its output if it fails.
quietly() {
  local log
  log=$(mktemp "$cache/quietly.XXXXXX")
  if "$@" >"$log" 2>&1 </dev/null; then
    rm -f "$log"
  else
    local code=$?
    tail -n 40 "$log" >&2
    rm -f "$log"
    die "exit code $code of: $*"
  fi
}

# Runs a command with a time limit, as a last resort: every wait of a suite has its own limit, which names what it waited
# for. In the foreground: otherwise the command would have its own process group and survive the time limit of the caller.
bounded() {
  local seconds=$1 code=0
  shift
  timeout --foreground --kill-after=5 "$seconds" "$@" || code=$?
  if [[ $code == 124 || $code == 137 ]]; then
    printf 'FAIL still running after %s s: %s\n' "$seconds" "$1"
  fi
  return "$code"
}

# Splits the only argument of a suite into host and port.
address_argument() {
  [[ $# == 1 && $1 == *:* ]] || {
    printf 'usage: %s HOST:PORT\n' "$0" >&2
    exit 2
  }
  host=${1%:*}
  port=${1##*:}
  export host port
}

# Creates certificates for a local server and a client in a folder: ca.pem, server.pem, client.pem, each with its key. They
# are valid for a day.
certificates() {
  local folder=$1 name
  command -v openssl >/dev/null || apt_need openssl
  rm -rf "$folder"
  mkdir -p "$folder"
  quietly openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=interop-ca \
    -addext basicConstraints=critical,CA:TRUE -keyout "$folder/ca.key" -out "$folder/ca.pem"
  for name in server client; do
    quietly openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=interop-$name" \
      -keyout "$folder/$name.key" -out "$folder/$name.csr"
    printf 'basicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n' >"$folder/extensions"
    quietly openssl x509 -req -days 1 -in "$folder/$name.csr" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" \
      -CAcreateserial -extfile "$folder/extensions" -out "$folder/$name.pem"
  done
}

# Whether the jars of ZooKeeper 3.9.5 and Curator 5.9.0 are on this machine.
has_jars_of_3_9() {
  [[ ${MINIKEEPER_ORIGINAL_JARS-} || -f $target/differential/jars-3.9.5/complete-with-curator ]]
}

# Prints the folder of the jars of ZooKeeper 3.9.5, Curator 5.9.0 and their dependencies: downloaded once, unless
# MINIKEEPER_ORIGINAL_JARS names another folder. The marker file is created last, once all jars are present.
jars_of_3_9() {
  local folder=$target/differential jars=$target/differential/jars-3.9.5
  if [[ ${MINIKEEPER_ORIGINAL_JARS-} ]]; then
    printf '%s' "$MINIKEEPER_ORIGINAL_JARS"
    return
  fi
  if [[ ! -f $jars/complete-with-curator ]]; then
    local download=$folder/download
    command -v python3 >/dev/null || apt_need python3 python3-venv
    python3 -c 'import ensurepip' 2>/dev/null || apt_need python3-venv
    note "downloading pyspark 4.3.0 for the jars of ZooKeeper 3.9.5 and Curator 5.9.0"
    rm -rf "$jars" "$download"
    mkdir -p "$jars" "$download"
    quietly python3 -m venv "$download/venv"
    quietly "$download/venv/bin/pip" download --disable-pip-version-check --no-deps --no-cache-dir \
      --dest "$download" pyspark==4.3.0
    tar -xzf "$download"/pyspark-4.3.0.tar.gz -C "$jars" --strip-components=3 --wildcards \
      '*/deps/jars/zookeeper-*' '*/deps/jars/slf4j-api-*' '*/deps/jars/netty-*' '*/deps/jars/log4j-*' \
      '*/deps/jars/metrics-core-*' '*/deps/jars/commons-*' '*/deps/jars/snappy-java-*' \
      '*/deps/jars/audience-annotations-*' '*/deps/jars/curator-*' '*/deps/jars/guava-*' '*/deps/jars/failureaccess-*'
    rm -rf "$download"
    touch "$jars/complete-with-curator"
  fi
  printf '%s' "$jars"
}

# Prints a class path with Curator's recipes: 5.4 of Debian, or 5.9 (jars_of_3_9).
curator_classpath() {
  local jar classpath=
  if [[ $1 == 5.9 ]]; then
    printf '%s/*' "$(jars_of_3_9)"
    return
  fi
  apt_need libcurator-client-java libcurator-framework-java libcurator-recipes-java libzookeeper-java libguava-java \
    libslf4j-java
  for jar in curator-recipes curator-framework curator-client zookeeper zookeeper-jute guava slf4j-api slf4j-nop; do
    classpath+=${classpath:+:}/usr/share/java/$jar.jar
  done
  printf '%s' "$classpath"
}

# Installs node-zookeeper-client in the folder node of the cache.
node_client() {
  local folder=$cache/node
  command -v node >/dev/null || apt_need nodejs
  command -v npm >/dev/null || apt_need npm
  # The lock file is copied last: its presence says that the installation went through. It names versions and checksums
  # but no registry, so that npm uses the one in its settings.
  if ! cmp -s "$interop/node/package-lock.json" "$folder/installed.json"; then
    note "installing node-zookeeper-client"
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$interop/node/package.json" "$interop/node/package-lock.json" "$folder"
    (cd "$folder" && quietly npm ci --ignore-scripts --no-audit --no-fund)
    cp "$interop/node/package-lock.json" "$folder/installed.json"
  fi
}
