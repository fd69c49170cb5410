#!/bin/bash
# The reward is 1 if the repository is the one that was made, with the one branch back.
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_COUNT=1
export GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
reward=0

check() {
    local fresh
    fresh=$(mktemp -d) || return
    bash /tests/make_repo.sh "$fresh/shop" || return
    wanted=$(git -C "$fresh/shop" rev-parse 'HEAD@{5}') # pricing, as it was left
    [ "$(git -C "$fresh/shop" log -1 --format=%s "$wanted")" = "Apply the discount per line" ] || return
    [ "$(git -C /app/shop rev-parse pricing)" = "$wanted" ] || { echo "pricing is another commit"; return 1; }
    [ "$(git -C /app/shop rev-parse main)" = "$(git -C "$fresh/shop" rev-parse main)" ] || { echo "main moved"; return 1; }
    [ "$(git -C /app/shop symbolic-ref HEAD)" = refs/heads/main ] || { echo "main is not checked out"; return 1; }
    [ -z "$(git -C /app/shop status --porcelain)" ] || { echo "there is something to commit"; return 1; }
    branches=$(git -C /app/shop for-each-ref --format='%(refname)' refs/heads | tr '\n' ' ')
    [ "$branches" = "refs/heads/main refs/heads/pricing " ] || { echo "branches: $branches"; return 1; }
    git -C /app/shop fsck --no-dangling --no-progress || { echo "objects are missing"; return 1; }
}

if check; then reward=1; fi
echo "$reward" > /logs/verifier/reward.txt
