#!/bin/bash
# Puts all that main needs into dist/app, needed files first.
set -euo pipefail
export LC_ALL=C
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

needs() { sed -n 's/^# needs: *//p' "src/$1.sh" | tr -s ' ' '\n' | sed '/^$/d'; }

declare -A seen=()
queue=(main) missing=()
while [ ${#queue[@]} -gt 0 ]; do
    name=${queue[0]} queue=("${queue[@]:1}")
    if [ -n "${seen[$name]:-}" ]; then continue; fi
    seen[$name]=1
    if [ ! -f "src/$name.sh" ]; then
        missing+=("$name")
        continue
    fi
    mapfile -t others < <(needs "$name")
    queue+=("${others[@]}")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "missing: ${missing[*]}" >&2
    exit 1
fi

declare -A done=()
order=()
mapfile -t left < <(printf '%s\n' "${!seen[@]}" | sort)
while [ ${#left[@]} -gt 0 ]; do
    next=
    for name in "${left[@]}"; do
        is_ready=1
        while IFS= read -r other; do
            if [ -z "${done[$other]:-}" ]; then is_ready=; fi
        done < <(needs "$name")
        if [ -n "$is_ready" ]; then next=$name; break; fi
    done
    if [ -z "$next" ]; then
        echo "a circle among: ${left[*]}" >&2
        exit 1
    fi
    done[$next]=1
    order+=("$next")
    mapfile -t left < <(printf '%s\n' "${left[@]}" | grep -vxF -- "$next" || true)
done

new=$(mktemp)
trap 'rm -f "$new"' EXIT
{
    echo '#!/bin/bash'
    for name in "${order[@]}"; do
        sed '/^# needs:/d' "src/$name.sh"
    done
} | awk '
    {
        out = ""
        while ((at = index($0, "@VERSION@")) > 0) {
            out = out substr($0, 1, at - 1) ENVIRON["BUILD_VERSION"]
            $0 = substr($0, at + 9)
        }
        print out $0
    }' > "$new"
mkdir -p dist
if ! cmp -s "$new" dist/app; then
    cat "$new" > dist/app
fi
chmod 755 dist/app
