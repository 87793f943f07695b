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
import type { StoredForm } from "../runtime/stored-forms.ts";

/** Encrypts secrets in etcd, history, backups of them and logs. AES-256-GCM under a versioned key-encryption key. */
export interface Sealer {
  /** `associatedData` is the key of the object that holds the text: sealed text moved elsewhere does not open. */
  seal(plain: string, associatedData: string): string;
  /**
   * As `seal`, and the same text each time while the current key is the same: for ids that must be found again. A
   * reader of two sealed texts can tell whether the plain texts are equal.
   */
  sealAlike(plain: string, associatedData: string): string;
  open(sealed: string, associatedData: string): string;
  /** HMAC-SHA256 under a key of its own for the purpose, hex: how credentials are stored and compared. */
  keyedHash(purpose: string, value: string): string;
  /** May texts be stored in the form: does every controller read it? Absent where there is one controller. */
  mayStore?(form: StoredForm): boolean;
}

/** Master keys by version, as in the file that HOLDFAST_MASTER_KEY_FILE names. */
export interface Keyring {
  /** The version that new texts are sealed under; older ones still open theirs. */
  readonly current: string;
  readonly keys: ReadonlyMap<string, Uint8Array>;
}

/**
 * A master key is only ever the source of subkeys (HKDF-SHA256, one a purpose). Sealed text names its key's version:
 * `sealed.<version>.<nonce and ciphertext and tag, base64url>`. Hashes are made under the first version for as long as
 * the installation lives, since stored ones cannot be made again.
 */
export function createSealer(keyring: Keyring, random: (bytes: number) => Buffer = randomBytes): Sealer {
  // KeyObjects: with the bytes themselves Node takes five times as long for each text and each hash.
  const sealing = new Map([...keyring.keys].map(([version, key]) => [version, keyFor(key, "seal")]));
  const current = sealing.get(keyring.current);
  const first = keyring.keys.get([...keyring.keys.keys()].toSorted(byNumber)[0] ?? "");
  assert(current !== undefined && first !== undefined, "the keyring has its current key");
  const hashing = new Map<string, KeyObject>();

  // The nonce of a text that is sealed alike depends on all of it, so no two texts have the same one (as in RFC 5297).
  const master = keyring.keys.get(keyring.current) ?? first;
  const alike = { seal: keyFor(master, "seal alike"), nonce: keyFor(master, "nonce alike") };
  for (const [version, key] of keyring.keys) sealing.set(`${version}${alikeMark}`, keyFor(key, "seal alike"));

  function sealWith(key: KeyObject, version: string, nonce: Buffer, plain: string, associatedData: string): string {
    const cipher = createCipheriv("aes-256-gcm", key, nonce);
    cipher.setAAD(Buffer.from(associatedData));
    const sealed = Buffer.concat([nonce, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return `sealed.${version}.${sealed.toString("base64url")}`;
  }

  return {
    seal: (plain, associatedData) => sealWith(current, keyring.current, random(nonceBytes), plain, associatedData),
    sealAlike(plain, associatedData) {
      const text = `${associatedData.length} ${associatedData}${plain}`;
      const nonce = createHmac("sha256", alike.nonce).update(text).digest().subarray(0, nonceBytes);
      return sealWith(alike.seal, `${keyring.current}${alikeMark}`, nonce, plain, associatedData);
    },
    open(sealed, associatedData) {
      const [mark, version = "", text = ""] = sealed.split(".");
      if (mark !== "sealed") throw new Error("not a sealed text");
      const key = sealing.get(version);
      if (key === undefined) throw new Error(`sealed under key ${version}, which is not in the keyring`);
      const bytes = Buffer.from(text, "base64url");
      if (bytes.length < nonceBytes + tagBytes) throw new Error("sealed text is cut short");
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

/** 32 bytes for one purpose; HKDF of RFC 5869 without salt, the master key being random. */
export function subkey(master: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", master, "", `holdfast ${purpose}`, 32));
}

function keyFor(master: Uint8Array, purpose: string): KeyObject {
  return createSecretKey(subkey(master, purpose));
}

/** Behind the version of a key: its texts are sealed alike, under a key of their own. */
const alikeMark = "a";
const nonceBytes = 12;
const tagBytes = 16;

function byNumber(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
