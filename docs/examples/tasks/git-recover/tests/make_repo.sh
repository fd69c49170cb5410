#!/bin/bash
# Makes a repository with two deleted branches; names and dates are fixed, so that commits have the same ids anywhere.
set -euo pipefail
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=Kim GIT_AUTHOR_EMAIL=kim@shop.example GIT_COMMITTER_NAME=Kim GIT_COMMITTER_EMAIL=kim@shop.example
clock=1767225600

commit() {
    clock=$((clock + 3600))
    git add -A
    GIT_AUTHOR_DATE="$clock +0000" GIT_COMMITTER_DATE="$clock +0000" git commit --quiet -m "$1"
}

git init --quiet --initial-branch=main "$1"
cd "$1"
git config user.name Kim
git config user.email kim@shop.example
printf 'apple 30\npear 45\n' > prices.txt
commit "Add the price list"
printf 'total() { awk "{ sum += \\$2 } END { print sum }" prices.txt; }\n' > total.sh
commit "Add the total"
git checkout --quiet -b pricing
printf 'apple 10\n' > discounts.txt
commit "Add discounts in percent"
printf 'total() { awk "NR==FNR { d[\\$1]=\\$2; next } { s += \\$2*(100-d[\\$1])/100 } END { print s }" discounts.txt prices.txt; }\n' > total.sh
commit "Apply the discount per line"
git checkout --quiet main
git checkout --quiet -b spike
printf 'total() { echo 42; }\n' > total.sh
commit "Apply the discount per line (spike)"
git checkout --quiet main
git branch --quiet -D pricing spike
printf 'plum 20\n' >> prices.txt
commit "Sell plums"
