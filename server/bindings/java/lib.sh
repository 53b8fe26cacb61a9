# Shared by the scripts of this folder; sourced, never run.
# shellcheck shell=bash

# The libraries to compile against, from the folder MINIKEEPER_JARS.
libraries=$(printf "${MINIKEEPER_JARS:-/usr/share/java}/%s.jar:" junit-jupiter-api junit-platform-commons \
  junit-platform-engine junit-platform-launcher apiguardian-api opentest4j junit4 curator-client curator-framework slf4j-api zookeeper)
libraries=${libraries%:}

# make_jar FILE FOLDER [OPTION ...]: makes a jar of all files in a folder. Their order is that of their names, and with
# SOURCE_DATE_EPOCH their time is that, so that two builds make the same jar; this needs Java 17 or later.
make_jar() {
  local file=$1 folder=$2 list=$1.list
  shift 2
  [[ -z ${SOURCE_DATE_EPOCH-} ]] || set -- "$@" --date="$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
  (cd "$folder" && find . -type f | LC_ALL=C sort) | sed "s#.*#-C \"$folder\" \"&\"#" >"$list"
  jar --create --file "$file" "$@" "@$list"
  rm "$list"
}
