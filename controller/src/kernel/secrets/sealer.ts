import assert from "node:assert";
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { readFile } from "node:fs/promises";
import type { GatedFormat } from "../runtime/format-gates.ts";

/** Encrypts secrets in etcd, the history, their backups and logs: AES-256-GCM under a versioned master key. */
export interface Sealer {
  /**
   * `associatedData` is the key of the object that contains the text: in another object the sealed text cannot be
   * opened.
   */
  seal(plain: string, associatedData: string): string;
  /**
   * Seals deterministically under the current key: equal inputs give equal texts, for ids that are looked up by their
   * sealed text. A reader of two sealed texts can see whether the plain texts are equal.
   */
  sealDeterministic(plain: string, associatedData: string): string;
  open(sealed: string, associatedData: string): string;
  /** HMAC-SHA256 in hex under a key for the purpose, for storing and comparing credentials. */
  keyedHash(purpose: string, value: string): string;
  /**
   * True if every live controller reads the format, so that it may be stored. Absent if there is only one controller.
   */
  mayStore?(format: GatedFormat): boolean;
}

/** Master keys by version, from the file HOLDFAST_MASTER_KEY_FILE. */
export interface Keyring {
  /** Version that seals new texts. Texts that were sealed under other versions can still be opened. */
  readonly current: string;
  readonly keys: ReadonlyMap<string, Uint8Array>;
}

/**
 * A master key is used only to derive subkeys (HKDF-SHA256, one for each purpose). Sealed text has the form
 * `sealed.<version>.<base64url of nonce, ciphertext and tag>`. Keyed hashes use the first version during the whole
 * lifetime of the installation, since stored hashes cannot be recomputed.
 */
export function createSealer(keyring: Keyring, random: (bytes: number) => Buffer = randomBytes): Sealer {
  // Keys are KeyObjects: with raw bytes Node needs five times as long for each text and each hash.
  const sealing = new Map([...keyring.keys].map(([version, key]) => [version, keyFor(key, "seal")]));
  const current = sealing.get(keyring.current);
  const first = keyring.keys.get([...keyring.keys.keys()].toSorted(byNumber)[0] ?? "");
  assert(current !== undefined && first !== undefined, "the keyring contains its current and first key");
  const hashing = new Map<string, KeyObject>();

  // The nonce of a deterministic text is derived from the complete text, so no two texts share one (as in RFC 5297).
  const master = keyring.keys.get(keyring.current) ?? first;
  const deterministic = { seal: keyFor(master, "seal alike"), nonce: keyFor(master, "nonce alike") };
  for (const [version, key] of keyring.keys) sealing.set(`${version}${deterministicMark}`, keyFor(key, "seal alike"));

  function sealWith(key: KeyObject, version: string, nonce: Buffer, plain: string, associatedData: string): string {
    const cipher = createCipheriv("aes-256-gcm", key, nonce);
    cipher.setAAD(Buffer.from(associatedData));
    const sealed = Buffer.concat([nonce, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `sealed.${version}.${sealed.toString("base64url")}`;
  }

  return {
    seal: (plain, associatedData) => sealWith(current, keyring.current, random(nonceBytes), plain, associatedData),
    sealDeterministic(plain, associatedData) {
      const text = `${associatedData.length} ${associatedData}${plain}`;
      const nonce = createHmac("sha256", deterministic.nonce).update(text).digest().subarray(0, nonceBytes);
      return sealWith(deterministic.seal, `${keyring.current}${deterministicMark}`, nonce, plain, associatedData);
    },
    open(sealed, associatedData) {
      const [mark, version = "", text = ""] = sealed.split(".");
      if (mark !== "sealed") throw new Error("not a sealed text");
      const key = sealing.get(version);
      if (key === undefined) throw new Error(`sealed under key ${version}, which is not in the keyring`);
      const bytes = Buffer.from(text, "base64url");
      if (bytes.length < nonceBytes + tagBytes) throw new Error("the sealed text is truncated");
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes));
      decipher.setAAD(Buffer.from(associatedData));
      decipher.setAuthTag(bytes.subarray(-tagBytes));
      return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8");
    },
    keyedHash(purpose, value) {
      const key = hashing.get(purpose) ?? keyFor(first, `hash ${purpose}`);
      hashing.set(purpose, key);
      return createHmac("sha256", key).update(value).digest("hex");
    },
  };
}

/** A subkey of 32 bytes for one purpose: HKDF (RFC 5869) without salt, as the master key is random. */
export function subkey(master: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", master, "", `holdfast ${purpose}`, 32));
}

function keyFor(master: Uint8Array, purpose: string): KeyObject {
  return createSecretKey(subkey(master, purpose));
}

/** Suffix of a key version: its texts are sealed deterministically, under a separate key. */
const deterministicMark = "a";
const nonceBytes = 12;
const tagBytes = 16;

function byNumber(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

/**
 * Reads `{"current": "v2", "keys": {"v1": "<base64 of 32 bytes>", "v2": ...}}`. Throws if the file is missing or
 * malformed.
 */
export async function readKeyring(file: string): Promise<Keyring> {
  const text = await readFile(file, "utf8");
  try {
    return parseKeyring(text);
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Throws unless the text is a valid file of master keys. */
export function parseKeyring(text: string): Keyring {
  const file: unknown = JSON.parse(text);
  if (!isKeyFile(file)) throw new Error('a key file has "current" and "keys"');
  const keys = new Map<string, Uint8Array>();
  for (const [version, encoded] of Object.entries(file.keys)) {
    if (!/^v[0-9]{1,9}$/.test(version)) throw new Error(`${version} is not a version such as v1`);
    const key = Buffer.from(encoded, "base64");
    if (key.length !== 32) throw new Error(`key ${version} has ${key.length} bytes, not 32`);
    keys.set(version, key);
  }
  if (!keys.has(file.current)) throw new Error(`the current key ${file.current} is not among the keys`);
  return { current: file.current, keys };
}

function isKeyFile(file: unknown): file is { current: string; keys: Record<string, string> } {
  if (typeof file !== "object" || file === null || !("current" in file) || !("keys" in file)) return false;
  const { current, keys } = file;
  if (typeof current !== "string" || typeof keys !== "object" || keys === null) return false;
  return Object.values(keys).every((key) => typeof key === "string");
}
