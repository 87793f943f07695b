#!/usr/bin/env python3
"""Reads an increment of Holdfast without Holdfast:
read_increment.py DIRECTORY SERVICE (BACKUP ATTEMPT KEY_ID KEY_FILE)... OUT

The four arguments are repeated for each backup of the chain, the full one first and the increment last. The files are
written to OUT. The arguments are explained in read_backup.py, which must be in the same directory.
"""
import os, struct, sys, tarfile
from read_backup import open_backup, require


def unpack(root, tar):
    archive = tarfile.open(fileobj=tar)
    # Python before 3.11.4 has no filters.
    archive.extraction_filter = getattr(tarfile, "tar_filter", lambda member, path: member)
    archive.extractall(root)


def patch(root, delta):
    """Applies a delta to the files below root."""
    magic, page = struct.unpack(">5sI", delta.read(9))
    require(magic == b"HFPD1" and page > 0, "not a delta of pages")
    named = set()
    for header in iter(lambda: delta.read(512), bytes(512)):
        entry, at = tarfile.TarInfo.frombuf(header, "utf-8", "strict"), 0
        path = os.path.normpath(os.path.join(root, entry.name))
        is_below = os.path.commonpath([root, path]) == root
        require(is_below and (entry.isdir() or entry.isreg()), f"{entry.name} is not a regular file or directory below the root")
        named.add(path)
        os.makedirs(path if entry.isdir() else os.path.dirname(path), exist_ok=True)
        if entry.isdir():
            continue
        with open(path, "r+b" if os.path.exists(path) else "w+b") as file:
            while at < entry.size:
                same, changed = struct.unpack(">II", delta.read(8))
                at, end = min(at + same * page, entry.size), min(at + (same + changed) * page, entry.size)
                size = max(os.path.getsize(path), file.tell())
                require(same + changed > 0 and at <= size, f"{entry.name} does not match the base")
                file.seek(at)
                file.write(delta.read(end - at))
                at = end
            file.truncate(entry.size)
    for folder, folders, files in os.walk(root, topdown=False):
        for path in {os.path.join(folder, name) for name in files + folders} - named:
            remove = os.rmdir if os.path.isdir(path) else os.remove
            remove(path)


def restore_chain(directory, service, chain, out):
    base = None
    os.makedirs(out, exist_ok=True)
    for backup in chain:
        apply = patch if base else unpack
        files, base = open_backup(directory, service, *backup, base, f"{out}.streams")
        for path in files:
            with open(path, "rb") as file:
                apply(os.path.abspath(out), file)
            os.remove(path)
    os.rmdir(f"{out}.streams")


if __name__ == "__main__":
    is_valid = len(sys.argv) > 7 and len(sys.argv) % 4 == 0
    directory, service, *arguments, out = sys.argv[1:] if is_valid else sys.exit(__doc__)
    restore_chain(directory, service, [arguments[at : at + 4] for at in range(0, len(arguments), 4)], out)
