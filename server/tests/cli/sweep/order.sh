#!/bin/sh
# order.sh: makes a job of an order, once more if that has failed.
try() { minikeeper cli "$@" || minikeeper cli "$@"; }

try create -s /jobs/job- A4
[ "$(try ls /jobs)" = "[job-0000000000]" ]
