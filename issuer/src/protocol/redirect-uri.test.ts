import { expect, test } from "vitest";
import { isRegistered } from "./authorize-request.ts";

const client = { redirectUris: ["https://shop.example/auth/callback", "http://127.0.0.1/callback?a=1"] };

test.each([
  "https://shop.example/auth/callback",
  "http://127.0.0.1/callback?a=1",
  "http://127.0.0.1:49152/callback?a=1",
])("%s is registered", (uri) => expect(isRegistered(client, uri)).toBe(true));

test.each([
  "https://shop.example/auth/callback/",
  "https://shop.example/auth/callback?x=1",
  "https://shop.example:8443/auth/callback",
  "https://shop.example.evil.test/auth/callback",
  "https://shop.example/auth/../auth/callback",
  "HTTPS://shop.example/auth/callback",
  "http://127.0.0.1:49152/callback",
  "http://127.0.0.1:49152/callback?a=1#x",
  "http://u@127.0.0.1:1/callback?a=1",
  "http://127.1:1/callback?a=1",
  "http://localhost:1/callback?a=1",
  "https://127.0.0.1:1/callback?a=1",
  "",
])("%j is not", (uri) => expect(isRegistered(client, uri)).toBe(false));
