#!/bin/sh
# claim.sh: two workers claim a job, unless somebody has claimed it.
claim() { [ "$(minikeeper cli ls /claims)" = "[]" ] && minikeeper cli create -s /claims/by- "$1"; }

claim one & claim two & wait
[ "$(minikeeper cli ls /claims | wc -w)" = 1 ]
