import { expect, test } from "vitest";
import { integer, list, readConfig, text } from "./config.ts";

test("every problem is in one error", () => {
  const settings = { name: text("NAME", "Name of it"), size: integer("SIZE", "Size of it", 1) };
  expect(() => readConfig(settings, { SIZE: "-1" })).toThrow(
    "configuration:\n  NAME is not set: Name of it\n  SIZE: -1 is not an integer from 0 on",
  );
});

test("a renamed setting is read by its former name, unless the present one is set", () => {
  const settings = { servers: { ...list("RESOLVERS", "Name servers"), formerly: "SERVERS" } };
  expect(readConfig(settings, {})).toEqual({ servers: [] });
  expect(readConfig(settings, { SERVERS: "a, b" })).toEqual({ servers: ["a", "b"] });
  expect(readConfig(settings, { SERVERS: "a", RESOLVERS: "c" })).toEqual({ servers: ["c"] });
});
