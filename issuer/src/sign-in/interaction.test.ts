import { expect, test } from "vitest";
import { partial } from "@holdfast/testing/partial.ts";
import type { App } from "../app.ts";
import { createDerivedKeys } from "../derived-keys.ts";
import { type IncomingRequest, Refused } from "../http/messages.ts";
import { type Interaction, newInteraction, readInteraction, saveInteraction } from "./interaction.ts";

const keys = createDerivedKeys(Buffer.alloc(32, 7).toString("base64url"));
const app = partial<App>({ keys, now: () => 1_000, config: { theme: { displayName: "Shop", brandColor: "#1f5fbf" } } });
const request: Interaction["request"] = {
  clientId: "app",
  redirectUri: "https://shop.example/cb",
  scope: "openid email",
  state: "s",
  nonce: "n",
  prompt: "",
};

/** The cookie of an interaction. */
function cookieOf(interaction: Interaction): string {
  const [line = ""] = saveInteraction(app, partial<IncomingRequest>({ cookies: new Map() }), interaction);
  return line.split(/[=;]/)[1] ?? "";
}

test("the size of the cookie reveals no field of the interaction", () => {
  const began = newInteraction(request, 1_000);
  const mail = { id: "0".repeat(36), email: "a@example.com", at: 1_000 };
  const states: Interaction[] = [began, { ...began, mail }, { ...began, mail: { ...mail, tries: 4 } }];
  expect(new Set(states.map((state) => cookieOf(state).length)).size).toBe(1);
  for (const state of states)
    expect(readInteraction(app, new Map([[`__Host-sign-in-${state.id}`, cookieOf(state)]]), state.id)).toEqual(state);
});

test("a cookie of up to 4,096 bytes is accepted, and a longer one is refused", () => {
  const lengths = Array.from({ length: 60 }, (_, at) => 2_500 + at * 10);
  const sizes = lengths.flatMap((length) => {
    try {
      return [cookieOf(newInteraction({ ...request, redirectUri: `https://${"s".repeat(length)}` }, 1_000)).length];
    } catch (error) {
      expect(error).toBeInstanceOf(Refused);
      return [];
    }
  });
  expect(sizes.length).toBeGreaterThan(20);
  expect(sizes.length).toBeLessThan(lengths.length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(4_096 - "__Host-sign-in-".length - 16 - 3);
});
