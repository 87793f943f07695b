#!/bin/sh
# Adds artifacts to the tree of a node image: add-artifacts.sh TREE ARCHIVE LIST
#
# Each line of LIST is `SHA256 FORM PATH`: a file of ARCHIVE, whether it is a program, a file, a tarball or a zip, and its
# path in the tree. Files belong to root, and none has a set-user-ID bit. The first directory of a tarball is left out.
set -eu
umask 022
tree=$1 archive=$2 list=$3

# Perl is there wherever mmdebstrap is. Links and permissions in a zip are ignored.
extract_zip() {
  perl -MIO::Uncompress::Unzip -MFile::Basename=dirname -MFile::Path=make_path -e '
    use strict;
    my ($archive, $directory) = @ARGV;
    my $zip = IO::Uncompress::Unzip->new($archive, Transparent => 0) or die "$archive is no zip\n";
    my $status = 1;
    for (; $status > 0; $status = $zip->nextStream()) {
      my $name = $zip->getHeaderInfo()->{Name};
      die "$archive has a file outside of its directory: $name\n" if $name =~ m{^/|(^|/)\.\.(/|$)};
      my $file = "$directory/$name";
      if ($name =~ m{/$}) { make_path($file); next; }
      make_path(dirname($file));
      open(my $out, ">", $file) or die "$file: $!\n";
      my ($buffer, $read);
      while (($read = $zip->read($buffer)) > 0) { print $out $buffer or die "$file: $!\n"; }
      die "$archive is damaged at $name\n" if $read < 0;
      close($out) or die "$file: $!\n";
    }
    die "$archive is damaged\n" if $status < 0;
  ' "$1" "$2"
}

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
    zip)
      mkdir "$tree$path"
      extract_zip "$archive/$sha256" "$tree$path"
      ;;
    *)
      echo "no such form of an artifact: $form" >&2
      exit 1
      ;;
  esac
done <"$list"
find "$tree/usr/local" -xdev -type f -perm /6000 -exec chmod ug-s {} +
