import { randomBytes, randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { createDerivedKeys } from "../derived-keys.ts";
import { readRefreshToken, refreshTokenText } from "./tokens.ts";

const keys = createDerivedKeys(randomBytes(32).toString("base64url"));
const others = createDerivedKeys(randomBytes(32).toString("base64url"));

test("a token is valid only for the app that issued it", () => {
  const token = { family: randomUUID(), generation: 12 };
  const text = refreshTokenText(token, keys);
  expect(readRefreshToken(text, keys)).toEqual(token);
  expect(readRefreshToken(text, others)).toBeUndefined();
});

test("a changed token is rejected", () => {
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
