import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";

/** PostgreSQL's SCRAM verifier of a password (RFC 5803), so that the password never appears in SQL. */
export function scramSha256Verifier(password: string, salt: Uint8Array = randomBytes(16)): string {
  const iterations = 4096;
  // RFC 7677; SASLprep leaves printable ASCII unchanged, and PostgreSQL accepts other text without it.
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  const storedKey = createHash("sha256").update(hmac(salted, "Client Key")).digest("base64");
  const serverKey = hmac(salted, "Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${Buffer.from(salt).toString("base64")}$${storedKey}:${serverKey}`;
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
