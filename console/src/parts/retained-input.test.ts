import { expect, test } from "vitest";
import { retainInput, retainInputOf, takeInput } from "./retained-input.ts";

test("input is returned once, to the same user, and not after a sign-out", () => {
  retainInputOf("mia");
  retainInput("form", { name: "orders" });
  retainInputOf("mia");
  expect(takeInput("form")).toEqual({ name: "orders" });
  expect(takeInput("form")).toEqual({});
  retainInput("form", { name: "orders" });
  retainInputOf("nora");
  expect(takeInput("form")).toEqual({});
  retainInput("form", { name: "orders" });
  retainInputOf(undefined);
  retainInputOf("nora");
  expect(takeInput("form")).toEqual({});
});
