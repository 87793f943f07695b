import { execFile } from "node:child_process";
import { webcrypto } from "node:crypto";
import { promisify } from "node:util";

/** A PKCS #10 request in DER for this key pair, by hand: enough ASN.1 for a name, a key and a signature. */
export async function newCertificateRequest(keys: webcrypto.CryptoKeyPair, commonName: string): Promise<Uint8Array> {
  const publicKey = new Uint8Array(await webcrypto.subtle.exportKey("spki", keys.publicKey));
  const name = der(0x30, der(0x31, der(0x30, Buffer.from("0603550403", "hex"), der(0x0c, Buffer.from(commonName)))));
  const info = der(0x30, Buffer.from("020100", "hex"), name, publicKey, Buffer.from("a000", "hex"));
  const raw = await webcrypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, keys.privateKey, info);
  const algorithm = Buffer.from("300a06082a8648ce3d040302", "hex");
  return der(0x30, info, algorithm, der(0x03, Buffer.from([0]), ecdsaDer(Buffer.from(raw))));
}

function ecdsaDer(raw: Buffer): Uint8Array {
  const half = raw.byteLength / 2;
  return der(0x30, integer(raw.subarray(0, half)), integer(raw.subarray(half)));
}

function integer(bytes: Buffer): Uint8Array {
  let at = 0;
  while (at < bytes.length - 1 && bytes[at] === 0) at += 1;
  const trimmed = bytes.subarray(at);
  const positive = (trimmed[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), trimmed]) : trimmed;
  return der(0x02, positive);
}

function der(tag: number, ...parts: Uint8Array[]): Uint8Array {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  if (length < 0x100) return Buffer.concat([Buffer.from([tag, 0x81, length]), content]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), content]);
}

/** openssl's printout of a certificate: an independent decoder. */
export async function opensslText(pem: string): Promise<string> {
  const run = promisify(execFile)("openssl", ["x509", "-noout", "-text"]);
  run.child.stdin?.end(pem);
  return (await run).stdout;
}
