import { randomBytes, randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { createDerivedKeys } from "../derived-keys.ts";
import { readRefreshToken, refreshTokenText } from "./refresh-token.ts";

const keys = createDerivedKeys(randomBytes(32).toString("base64url"));
const others = createDerivedKeys(randomBytes(32).toString("base64url"));

test("a token is read by the app that made it, and by no other", () => {
  const token = { family: randomUUID(), generation: 12 };
  const text = refreshTokenText(token, keys);
  expect(readRefreshToken(text, keys)).toEqual(token);
  expect(readRefreshToken(text, others)).toBeUndefined();
});

test("nothing of a token can be changed", () => {
  const text = refreshTokenText({ family: randomUUID(), generation: 1 }, keys);
  const [family = "", , mac = ""] = text.split(".");
  for (const changed of [
    `${family}.2.${mac}`,
    `${family}.01.${mac}`,
    `${randomUUID()}.1.${mac}`,
    `${text}A`,
    text.slice(0, -1),
    "",
  ])
    expect(readRefreshToken(changed, keys), changed).toBeUndefined();
});
