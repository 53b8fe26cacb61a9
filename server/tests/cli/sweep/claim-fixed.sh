#!/bin/sh
claim() { minikeeper cli create /claims/job "$1"; } # fails if somebody has claimed it

claim one & claim two & wait
[ "$(minikeeper cli ls /claims | wc -w)" = 1 ]
