import { randomBytes } from "node:crypto";

const form = /^hft_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})[A-Za-z0-9_-]{32}$/;

/** A bearer token as its holder has it: the id, which finds it, and 192 random bits. */
export function newTokenText(id: string): string {
  return `hft_${id.replaceAll("-", "")}${randomBytes(24).toString("base64url")}`;
}

/** The id in a token; undefined for a token of another form. */
export function tokenIdOf(text: string): string | undefined {
  return form.exec(text)?.slice(1).join("-");
}

/** The one-time token that sets a person's first password; it names the person. */
export function newSetupToken(userId: string): string {
  return `hfu_${Buffer.from(userId).toString("base64url")}.${randomBytes(24).toString("base64url")}`;
}

/** User name in the text of a setup token; undefined for any other text. It proves nothing. */
export function userOfSetupToken(text: string): string | undefined {
  const name = /^hfu_([A-Za-z0-9_-]{1,96})\.[A-Za-z0-9_-]{32}$/.exec(text)?.[1];
  return name === undefined ? undefined : Buffer.from(name, "base64url").toString("utf8");
}
