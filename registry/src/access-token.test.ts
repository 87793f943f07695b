import { describe, expect, test } from "vitest";
import { createAccessTokens, tokenSeconds } from "./access-token.ts";
import { sharedKeysOf } from "./shared-keys.ts";

describe("tokens for the registry", () => {
  const claims = {
    sub: "api_key:hfk_1",
    access: [{ type: "repository", name: "o-1/shop", actions: ["pull"] }],
  } as const;

  test("are valid until they expire", async () => {
    let now = 1_900_000_000_000;
    const tokens = await createAccessTokens(sharedKeysOf("a").tokens, () => now);
    const token = tokens.sign(claims);
    expect(tokens.verify(token)).toMatchObject(claims);
    now += tokenSeconds * 1_000;
    expect(tokens.verify(token)).toBeUndefined();
  });

  test("of another store, or with changed contents, are not valid", async () => {
    const [tokens, same, others] = await Promise.all(
      ["a", "a", "b"].map((secret) => createAccessTokens(sharedKeysOf(secret).tokens, Date.now)),
    );
    if (tokens === undefined || same === undefined || others === undefined) throw new Error("there are three");
    expect(same.verify(tokens.sign(claims))).toMatchObject(claims);
    const [head = "", body = "", signature = ""] = tokens.sign(claims).split(".");
    const changed = Buffer.from(body, "base64url").toString().replace("o-1", "o-2");
    const texts = [
      others.sign(claims),
      [head, Buffer.from(changed).toString("base64url"), signature].join("."),
      [head, body, ""].join("."),
      [head, body].join("."),
      [Buffer.from('{"alg":"none"}').toString("base64url"), body, ""].join("."),
      "",
    ];
    expect(texts.map((text) => tokens.verify(text))).toEqual(texts.map(() => undefined));
  });
});
