#!/bin/sh
try() { minikeeper cli "$@" || minikeeper cli "$@"; }

try create /jobs/order-17 A4 # fails if the first try has created it
[ "$(try ls /jobs)" = "[order-17]" ]
