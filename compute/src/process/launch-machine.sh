#!/bin/sh
# Starts a machine of the process provider. It goes on when the controller that called it ends.
#
#   MACHINE_DIR        directory of the machine; `alive` in it is held open and locked for as long as it runs
#   MACHINE_RUN        file that says which process it is
#   MACHINE_GROUPS     control groups to be in, one a line
#   MACHINE_ISOLATION  "root", "user" (in a user namespace as well) or "none" (processes of the host)
#
# Arguments: NAME=VALUE... PROGRAM ARGUMENT... Descriptor 3 gets "up" when the program is about to start.
# Exit status 75: the machine runs already.
set -eu

# One descriptor does two things: its lock lets no second one start, and its end tells every watcher that the machine
# ended. Both are the kernel's work, whatever kills whom.
[ -p "$MACHINE_DIR/alive" ] || mkfifo "$MACHINE_DIR/alive"
exec 9<>"$MACHINE_DIR/alive"
flock --nonblock 9 || exit 75

# pid, start time and boot: never a pid alone. `exec` keeps pid and start time, so this is true of what follows.
read -r stat </proc/self/stat
read -r boot </proc/sys/kernel/random/boot_id
after_name=${stat##*) }
start_ticks=$(set -- $after_name; echo "${20}")
echo "launcher $$ $start_ticks $boot $MACHINE_ISOLATION" >"$MACHINE_RUN"
IFS='
'
for group in $MACHINE_GROUPS; do
  echo "group $group" >>"$MACHINE_RUN"
  echo $$ >"$group/cgroup.procs"
done
unset IFS

enter=${0%/*}/enter-machine.sh
case $MACHINE_ISOLATION in
  root) exec unshare --mount --pid --ipc --fork --kill-child "$enter" "$@" ;;
  user) exec unshare --user --map-root-user --mount --pid --ipc --fork --kill-child "$enter" "$@" ;;
esac

echo "init $$ $start_ticks" >>"$MACHINE_RUN"
(echo up >&3) 2>/dev/null || :
exec 3>&-
exec env -i "$@"
