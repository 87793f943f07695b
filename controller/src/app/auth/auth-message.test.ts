import { expect, test } from "vitest";
import { themeOf } from "./auth-message.ts";

test("pages and mails have the app's name unless the theme has another one", () => {
  expect(themeOf("shop", {})).toEqual({ displayName: "shop", brandColor: "#1f5fbf" });
  expect(themeOf("shop", { displayName: "The Shop", brandColor: "#336699" })).toEqual({
    displayName: "The Shop",
    brandColor: "#336699",
  });
});
