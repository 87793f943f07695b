import { randomInt } from "node:crypto";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/**
 * Returns a password of 24 letters and digits (142 bits), which URIs, shells and engines' configuration files need not
 * escape.
 */
export function makePassword(random: (below: number) => number = randomInt): string {
  return Array.from({ length: 24 }, () => alphabet[random(alphabet.length)]).join("");
}
