#!/bin/sh
# order.sh: makes a job of an order, once more if that has failed.
zk() { minikeeper cli -server "$MINIKEEPER_CONNECT" "$@"; }
try() { zk "$@" || zk "$@"; }

try create -s /jobs/job- A4
[ "$(try ls /jobs)" = "[job-0000000000]" ]
