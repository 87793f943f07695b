#!/bin/sh
# Adds artifacts to the tree of a node image: add-artifacts.sh TREE ARCHIVE LIST
#
# Each line of LIST is `SHA256 FORM PATH`: a file of ARCHIVE, whether it is a program, a file or a tarball, and its path
# in the tree. Files belong to root, and none has a set-user-ID bit.
set -eu
umask 022
tree=$1 archive=$2 list=$3

while read -r sha256 form path; do
  if ! echo "$sha256  $archive/$sha256" | sha256sum --check --status; then
    echo "the archive's file for $path does not have the SHA-256 $sha256 of its name: remove it" >&2
    exit 1
  fi
  mkdir -p "$tree$(dirname "$path")"
  case $form in
    program) install -m 755 "$archive/$sha256" "$tree$path" ;;
    file) install -m 644 "$archive/$sha256" "$tree$path" ;;
    tarball)
      mkdir "$tree$path"
      tar --extract --gzip --file="$archive/$sha256" --directory="$tree$path" --strip-components=1 \
        --no-same-owner --no-same-permissions
      chmod -R u+rwX,go+rX "$tree$path"
      ;;
    *)
      echo "no such form of an artifact: $form" >&2
      exit 1
      ;;
  esac
done <"$list"
find "$tree/usr/local" -xdev -type f -perm /6000 -exec chmod ug-s {} +
