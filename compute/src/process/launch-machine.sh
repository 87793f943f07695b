#!/bin/sh
# Starts a machine of the process provider, which outlives the calling controller.
#
#   MACHINE_DIR        directory of the machine; its pipe `alive` is open and locked while the machine runs
#   MACHINE_RUN        file for the identity of the machine's process
#   MACHINE_GROUPS     control groups to enter, one per line
#   MACHINE_ISOLATION  "root", "user" (in a user namespace as well) or "none" (processes of the host)
#
# Arguments: NAME=VALUE... PROGRAM ARGUMENT... Descriptor 3 receives "up" when the program is about to start.
# Exit status 75: the machine runs already.
set -eu

# One descriptor has two purposes: its lock prevents a second start, and its end notifies every watcher. The kernel does
# both even if this process or the controller is killed.
[ -p "$MACHINE_DIR/alive" ] || mkfifo "$MACHINE_DIR/alive"
exec 9<>"$MACHINE_DIR/alive"
flock --nonblock 9 || exit 75

# Pid, start time and boot id. `exec` retains pid and start time, so they identify the program that follows.
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
