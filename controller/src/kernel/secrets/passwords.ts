import { randomInt } from "node:crypto";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** 24 letters and digits, 142 bits: safe in URIs, shells and every engine's configuration. */
export function makePassword(random: (below: number) => number = randomInt): string {
  return Array.from({ length: 24 }, () => alphabet[random(alphabet.length)]).join("");
}
