#!/bin/sh
# Ends an installation of a test when its test ends, by whatever: standard input is a pipe from the test's process.
# Kills every process that names the data directory in arguments or environment, then removes the directory.
read -r _ || :
for round in 1 2 3; do
  for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    [ "$pid" = "$$" ] && continue
    grep -qaF "$1" "$process/cmdline" "$process/environ" 2>/dev/null && kill -9 "$pid" 2>/dev/null
  done
  sleep 0.1
done
for mount in $(grep -F " $1" /proc/mounts | cut -d' ' -f2 | sort -r); do umount "$mount"; done
rm -rf "$1"
