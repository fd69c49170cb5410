#!/bin/bash
# Prints groups of equal files: count, size, paths; the most wasteful first.
set -euo pipefail
export LC_ALL=C
[ -d "${1:-}" ] || exit 2
cd -- "$1"

# A checksum program would escape backslashes in names; reading from its standard input, it sees none.
find . -type f -size +0c -printf '%s %P\n' | sort -k2 | while IFS= read -r line; do
    size=${line%% *} path=${line#* }
    sum=$(sha256sum < "./$path")
    printf '%s\t%s\t%s\n' "${sum%% *}" "$size" "$path"
done | awk -F '\t' '
    { key = $1; count[key]++; size[key] = $2; paths[key] = paths[key] "\t" $3; if (count[key] == 1) first[key] = $3 }
    END {
        for (key in count) if (count[key] > 1)
            printf "%d\t%s\t%d\t%d%s\n", size[key] * (count[key] - 1), first[key], count[key], size[key], paths[key]
    }' | sort -t "$(printf '\t')" -k1,1nr -k2,2 | cut -f3-
