#!/usr/bin/env python3
"""Reads a full backup of Holdfast without Holdfast: read_backup.py DIRECTORY SERVICE BACKUP ATTEMPT KEY_ID KEY_FILE OUT

DIRECTORY contains the objects (a directory store, or a copy of the bucket), KEY_FILE the 32 bytes of the backup's key
in base64. Each stream is written to OUT/<name>. The program fails if an object is not exactly as it was sealed.
read_increment.py reads increments. Requires Python 3.11, the package `cryptography` and the program `zstd`.
"""
import base64, hashlib, json, os, re, struct, subprocess, sys
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def require(condition, message):
    if not condition:
        sys.exit(f"refused: {message}")


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def derive(secret, salt, purpose):
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=purpose.encode()).derive(secret)


def header_of(data, magic):
    """The header's bytes, the parsed header, and its end."""
    require(data[:5] == magic, "wrong magic")
    end = 9 + struct.unpack(">I", data[5:9])[0]
    return data[9:end], json.loads(data[9:end]), end


def open_stream(data, secret, expected):
    """Sealed stream: header, then frames of AES-256-GCM."""
    raw, header, at = header_of(data, b"HFSS1")
    for label, value in expected.items():
        require(header.get(label) == value, f"{label} is {header.get(label)}, not {value}")
    cipher = AESGCM(derive(secret, base64.b64decode(header["salt"]), "holdfast sealed stream"))
    plain, number, last = [], 0, False
    while not last:
        require(at + 4 <= len(data), "it is truncated")
        (length,) = struct.unpack(">I", data[at : at + 4])
        last, at, end = length >= 1 << 31, at + 4, at + 4 + length % (1 << 31)
        associated = hashlib.sha256(raw).digest() + bytes([last])
        plain.append(cipher.decrypt(struct.pack(">IQ", 0, number), data[at:end], associated))
        at, number = end, number + 1
    require(at == len(data), "bytes follow the last frame")
    return b"".join(plain)


def open_backup(directory, service, backup, attempt, key_id, key_file, base, out):
    """Writes the streams of a backup with this base. Returns their files, and the base of the next backup."""
    prefix, secret = f"services/{service}/backups/{backup}", base64.b64decode(read(key_file))
    labels = {"service": service, "backup": backup, "keyVersion": key_id}

    def opened(data, kind, name):
        return open_stream(data, secret, {**labels, "format": f"holdfast backup {kind} 1", "object": name})

    sealed = read(directory, prefix, attempt, "manifest")
    manifest = json.loads(opened(sealed, "manifest", f"{prefix}/{attempt}/manifest"))
    kind = "holdfast backup 2" if base else "holdfast backup 1"
    require(manifest["format"] == kind, f"it is a {manifest['format']}, not a {kind}")
    require(manifest["attempt"] == int(attempt), "it is another attempt")
    require(manifest.get("base") == base, "it has another base")
    os.makedirs(out, exist_ok=True)
    files = [os.path.join(out, os.path.basename(stream["name"])) for stream in manifest["streams"]]
    for path, stream in zip(files, manifest["streams"]):
        with open(path, "w+b") as file:
            zstd = subprocess.Popen(["zstd", "-dc"], stdin=subprocess.PIPE, stdout=file)
            for name, sha256 in ((part["object"], part["sha256"]) for part in stream["parts"]):
                match = re.fullmatch(rf"{re.escape(prefix)}/([1-9]\d*)/{re.escape(stream['name'])}/\d{{6}}", name)
                require(match and int(match[1]) <= int(attempt), "a part of another backup")
                part = read(directory, name)
                require(hashlib.sha256(part).hexdigest() == sha256, f"{name} differs from the stored object")
                zstd.stdin.write(opened(part, "part", name))
            zstd.stdin.close()
            require(zstd.wait() == 0, "zstd failed")
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            require(sha256 == stream["sha256"], f"{stream['name']} differs from the data that were backed up")
    return files, {"backup": backup, "attempt": int(attempt), "manifestSha256": hashlib.sha256(sealed).hexdigest()}


if __name__ == "__main__":
    directory, service, *backup, out = sys.argv[1:] if len(sys.argv) == 8 else sys.exit(__doc__)
    open_backup(directory, service, *backup, None, out)
