# Runs on a host that has no Python: answers one request a line, as a plain POSIX shell can.
# Each answer ends with a line ".": the next request is read only then. What begins with the mark comes from
# nvidia-smi, which may take its time in the background; each such line is written at once and whole. The
# mark is set before this by whoever sends it, and nobody on the host can guess it.
export LC_ALL=C
smi=
tell() { printf '%s\n' "$2" | while IFS= read -r l; do echo "$mark$1 $l"; done; echo "$mark$1. $3"; }
gpus() {
    o=$(nvidia-smi "--query-gpu=$1" --format=csv,noheader,nounits 2>&1)
    tell g "$o" $?
    o=$(nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits 2>&1)
    tell a "$o" $?
}
look() {
    f=
    for p; do f="$f /proc/$p"; done
    stat -c 'uid %u %n' $f
    for p; do [ -r "/proc/$p/cmdline" ] && echo "argv $p" && base64 <"/proc/$p/cmdline"; done
}
more() {
    echo "more $1"
    echo "out $(readlink "/proc/$1/fd/1")"
    echo "err $(readlink "/proc/$1/fd/2")"
    while IFS= read -r l; do echo "cgroup $l"; done <"/proc/$1/cgroup"
}
log() {
    s=$(stat -Lc '%d:%i %s %Y' -- "$3" 2>&1) || { echo "error $s"; return; }
    [ -f "$3" ] || { echo "error it is no file"; return; }
    [ -r "$3" ] || { echo "error permission denied"; return; }
    echo "$s"
    set -- "$1" "$2" "$3" $s
    [ "$1" -lt "$5" ] || return
    tail -c "+$(($1 + 1))" -- "$3" | head -c "$2" | base64
}
while IFS= read -r line; do
    set -f
    set -- $line
    set +f
    case $1 in
    hello)
        for f in kernel/hostname kernel/osrelease kernel/random/boot_id; do
            IFS= read -r l <"/proc/sys/$f"; echo "$l"
        done
        id -u; id -un; date +%s
        IFS= read -r l </proc/uptime; echo "$l"
        grep -c '^processor' /proc/cpuinfo
        for c in base64 stat tail head readlink; do command -v "$c" >/dev/null 2>&1 || echo "no $c"; done
        ;;
    gpus)
        [ "$smi" ] && kill -0 "$smi" 2>/dev/null || { gpus "$2" </dev/null & smi=$!; } ;;
    list) echo /proc/[0-9]* ;;
    stat) shift; for p; do { IFS= read -r l <"/proc/$p/stat"; } 2>/dev/null && echo "$l"; done ;;
    look) shift; look "$@" 2>/dev/null ;;
    more) shift; for p; do more "$p" 2>/dev/null; done ;;
    log) p=${line#log * * }; log "$2" "$3" "$p" ;;
    memory) cat /proc/meminfo; echo "load $(cat /proc/loadavg)" ;;
    esac
    echo .
done
[ "$smi" ] && kill "$smi" 2>/dev/null
