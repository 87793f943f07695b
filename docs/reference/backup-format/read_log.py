#!/usr/bin/env python3
"""Reads one log object of Holdfast without Holdfast: read_log.py DIRECTORY SERVICE TERM SEQUENCE KEY_FILE OUT

DIRECTORY contains the objects, KEY_FILE the 32 bytes of the log's key in base64. The program fails if the object is not
exactly as it was sealed. It has the requirements of read_backup.py.
"""
import base64, hashlib, hmac, subprocess, sys
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from read_backup import derive, header_of, read, require


def open_log(data, secret, service, term, sequence):
    """Log object: header, AES-256-CBC, HMAC-SHA256 over all bytes before."""
    _, header, at = header_of(data, b"HFLO1")
    salt = base64.b64decode(header["salt"])
    mac = hmac.new(derive(secret, salt, "holdfast log mac"), data[:-32], hashlib.sha256).digest()
    require(hmac.compare_digest(mac, data[-32:]), "it was changed")
    identity = (header["format"], header["service"], header["term"], header["sequence"])
    require(identity == ("holdfast log 1", service, term, sequence), "it is another object")
    key, iv = derive(secret, salt, "holdfast log cipher"), base64.b64decode(header["iv"])
    decryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor()
    padded = decryptor.update(data[at:-32]) + decryptor.finalize()
    log = subprocess.run(["zstd", "-dc"], input=padded[: -padded[-1]], capture_output=True, check=True).stdout
    require(len(log) == header["bytes"], "its length differs")
    return header, log


if __name__ == "__main__":
    directory, service, term, sequence, key_file, out = sys.argv[1:] if len(sys.argv) == 7 else sys.exit(__doc__)
    name = f"services/{service}/log/{int(term):010}/{int(sequence):012}"
    secret = base64.b64decode(read(key_file))
    header, log = open_log(read(directory, name), secret, service, int(term), int(sequence))
    with open(out, "wb") as file:
        file.write(log)
    print(f"{header['from']} to {header['to']}: {len(log)} bytes")
