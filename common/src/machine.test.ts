import { expect, test } from "vitest";
import { defineMachine, next } from "./machine.ts";

const door = defineMachine("door", [
  ["Open", "push", "Closed", "none"],
  ["Closed", "pull", "Open", "creak"],
]);

test("an event selects the state and effect of its row", () => {
  expect(next(door, "Closed", "pull")).toEqual(["Closed", "pull", "Open", "creak"]);
});

test("an event without a row is ignored", () => {
  expect(next(door, "Open", "pull")).toBeUndefined();
});

test("an ambiguous table throws at load time", () => {
  expect(() =>
    defineMachine("twice", [
      ["A", "go", "B", "none"],
      ["A", "go", "C", "none"],
    ]),
  ).toThrow("two rows for go in A");
});
