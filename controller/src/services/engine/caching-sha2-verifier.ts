import { hash, randomBytes } from "node:crypto";

/** The engine reads `005` as 5,000 rounds. */
const rounds = 5_000;
const saltLength = 20;
const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Order in which the digest's bytes are printed, three at a time. */
// biome-ignore format: a table
const order = [[0, 10, 20], [21, 1, 11], [12, 22, 2], [3, 13, 23], [24, 4, 14], [15, 25, 5], [6, 16, 26], [27, 7, 17], [18, 28, 8], [9, 19, 29]] as const;

/** MySQL's verifier of a password for `caching_sha2_password`: SHA-256-crypt with a salt of 20 characters. */
export function cachingSha2Verifier(password: string, salt: string = randomSalt()): string {
  return `$A$005$${salt}${sha256Crypt(Buffer.from(password), Buffer.from(salt))}`;
}

function randomSalt(): string {
  return Array.from(randomBytes(saltLength), (byte) => alphabet.charAt(byte & 63)).join("");
}

/** The hash part of SHA-256-crypt (Drepper, "Unix crypt using SHA-256 and SHA-512"). */
function sha256Crypt(password: Buffer, salt: Buffer): string {
  const both = sha256(password, salt, password);
  const parts: Buffer[] = [password, salt, repeated(both, password.length)];
  for (let bits = password.length; bits > 0; bits >>= 1) parts.push((bits & 1) === 1 ? both : password);
  let digest = sha256(...parts);
  const passwordBytes = repeated(sha256(...Array<Buffer>(password.length).fill(password)), password.length);
  const saltBytes = repeated(sha256(...Array<Buffer>(16 + (digest[0] ?? 0)).fill(salt)), salt.length);
  for (let round = 0; round < rounds; round += 1) {
    const isOdd = round % 2 === 1;
    digest = sha256(
      isOdd ? passwordBytes : digest,
      ...(round % 3 === 0 ? [] : [saltBytes]),
      ...(round % 7 === 0 ? [] : [passwordBytes]),
      isOdd ? digest : passwordBytes,
    );
  }
  const at = (index: number) => digest[index] ?? 0;
  const groups = order.map(([high, middle, low]) => printed((at(high) << 16) | (at(middle) << 8) | at(low), 4));
  return `${groups.join("")}${printed((at(31) << 8) | at(30), 3)}`;
}

function printed(value: number, length: number): string {
  return Array.from({ length }, (_, index) => alphabet.charAt((value >> (6 * index)) & 63)).join("");
}

function repeated(bytes: Buffer, length: number): Buffer {
  return Buffer.alloc(length, bytes);
}

function sha256(...parts: readonly Buffer[]): Buffer {
  return hash("sha256", Buffer.concat(parts), "buffer");
}
