import { readFile } from "node:fs/promises";
import type { Keyring } from "./sealer.ts";

/**
 * Reads `{"current": "v2", "keys": {"v1": "<base64 of 32 bytes>", "v2": ...}}`; throws when the file is missing or
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
