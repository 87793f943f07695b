import { createHash, createHmac, pbkdf2Sync, randomBytes, randomInt } from "node:crypto";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** 24 letters and digits, 142 bits: safe in a URI, in a shell and in every engine's configuration. */
export function makePassword(random: (below: number) => number = randomInt): string {
  return Array.from({ length: 24 }, () => alphabet[random(alphabet.length)]).join("");
}

/** PostgreSQL's verifier of a password (RFC 5803): the password itself never reaches SQL. */
export function scramSha256Verifier(password: string, salt: Uint8Array = randomBytes(16)): string {
  const iterations = 4096;
  // RFC 7677; SASLprep leaves printable ASCII as it is, and PostgreSQL takes anything else unprepared as well.
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  const storedKey = createHash("sha256").update(hmac(salted, "Client Key")).digest("base64");
  const serverKey = hmac(salted, "Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${Buffer.from(salt).toString("base64")}$${storedKey}:${serverKey}`;
}

/** What valkey's ACL takes in place of a password. */
export function valkeyVerifier(password: string): string {
  return `#${createHash("sha256").update(password).digest("hex")}`;
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
