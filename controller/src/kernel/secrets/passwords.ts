import { createHash, createHmac, pbkdf2Sync, randomBytes, randomInt } from "node:crypto";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** 24 letters and digits, 142 bits: safe in URIs, shells and every engine's configuration. */
export function makePassword(random: (below: number) => number = randomInt): string {
  return Array.from({ length: 24 }, () => alphabet[random(alphabet.length)]).join("");
}

/** PostgreSQL's SCRAM verifier of a password (RFC 5803), so that the password itself never appears in SQL. */
export function scramSha256Verifier(password: string, salt: Uint8Array = randomBytes(16)): string {
  const iterations = 4096;
  // RFC 7677; SASLprep leaves printable ASCII unchanged, and PostgreSQL accepts other text without it.
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  const storedKey = createHash("sha256").update(hmac(salted, "Client Key")).digest("base64");
  const serverKey = hmac(salted, "Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${Buffer.from(salt).toString("base64")}$${storedKey}:${serverKey}`;
}

/** The SHA-256 that valkey's ACL accepts instead of a password. */
export function valkeyVerifier(password: string): string {
  return `#${createHash("sha256").update(password).digest("hex")}`;
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
