# Our programs and those of Curator, side by side on one server. Sourced after lib.sh, never run.
# shellcheck shell=bash disable=SC2034

# Sets `ours` and `theirs`, the commands of ours and of Curator's: the name of a program follows. Takes the version of Curator,
# the largest heap of Java, and the folder of the test, which it empties.
partners() {
  local jar classpath
  command -v javac >/dev/null || apt_need default-jdk-headless
  apt_need libcurator-discovery-java libjackson2-core-java libjackson2-databind-java libjackson2-annotations-java
  # Curator's recipes come first, because Debian's jar of the discovery names those of 5.4 as its own.
  classpath=${CURATOR_CLASSPATH-$(curator_classpath "$1")}
  for jar in curator-x-discovery jackson-core jackson-databind jackson-annotations; do
    classpath+=:/usr/share/java/$jar.jar
  done
  rm -rf "$3"
  mkdir -p "$3/classes"
  quietly javac -encoding UTF-8 -proc:none -cp "$classpath" -d "$3/classes" "$interop"/curator/*.java
  ours=("$(test_program partner)")
  theirs=(java "-Xmx$2" -XX:+UseSerialGC -Dfile.encoding=UTF-8 -Dlog4j2.level=OFF -cp "$3/classes:$classpath")
}

# Runs a program of Curator's beside ours of the same name: pair SECONDS NAME FOLDER ITS-ARGUMENT... -- ARGUMENT... Returns 1
# if either fails.
pair() {
  local seconds=$1 name=$2 folder=$3 arguments=() java wrong=0
  shift 3
  while [[ $1 != -- ]]; do
    arguments+=("$1")
    shift
  done
  shift
  bounded "$seconds" "${theirs[@]}" "${name^}" "${arguments[@]}" >"$folder/java.log" 2>&1 &
  java=$!
  bounded "$seconds" "${ours[@]}" "$name" "$@" >"$folder/rust.log" 2>&1 || wrong=1
  wait "$java" || wrong=1
  return "$wrong"
}

# Prints the logs of a pair, and the result of its suite: pair_result NAME FOLDER WRONG TEXT.
pair_result() {
  if (($3)); then
    tail -n 20 "$2"/*.log "$2"/*.diff 2>/dev/null
    printf 'FAIL %s: the programs do not see the same\n%s: 0 passed, 1 failed\n' "$1" "$1"
    exit 1
  fi
  cat "$2"/*.log
  printf 'ok %s: %s\n%s: 1 passed, 0 failed\n' "$1" "$4" "$1"
}
