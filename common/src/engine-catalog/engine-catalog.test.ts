import { expect, test } from "vitest";
import { engineNamed } from "./engine-catalog.ts";

test.each([
  ["postgres", "postgresql"],
  ["postgresql", "postgresql"],
  ["valkey", "valkey"],
  ["kafka", "kafka"],
  ["toString", "toString"],
])("%s names the engine %s", (name, engine) => {
  expect(engineNamed(name)).toBe(engine);
});
