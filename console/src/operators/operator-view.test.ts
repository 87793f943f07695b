import { platformServices } from "@holdfast/testing/api/api-methods.ts";
import { expect, test } from "vitest";
import { operatorTabs, operatorText, operatorTone, valueOf } from "./operator-view.ts";

const lists = operatorTabs.flatMap(({ lists: all }) => all);

test("tabs and titles are unique", () => {
  expect(new Set(operatorTabs.map(({ name }) => name)).size).toBe(operatorTabs.length);
  expect(new Set(lists.map(({ title }) => title)).size).toBe(lists.length);
});

test.each(lists.map((list) => [list.title, list] as const))("%s is a list of the API with these members", (_, list) => {
  const service = platformServices.find(({ name }) => name === list.service);
  const method = service?.methods.find(({ name }) => name === list.method);
  const entries = method?.output.fields.find(({ jsonName }) => jsonName === list.plural);
  if (entries?.message === undefined) throw new Error(`${list.service}/${list.method} has no list ${list.plural}`);
  for (const [title, member] of list.columns) expect(hasMember(entries.message, member), title).toBe(true);
});

type Message = (typeof platformServices)[number]["methods"][number]["output"];

function hasMember(message: Message, member: string): boolean {
  const [first, ...rest] = member.split(".");
  const field = message.fields.find(({ jsonName }) => jsonName === first);
  if (rest.length === 0) return field !== undefined;
  return field?.message !== undefined && hasMember(field.message, rest.join("."));
}

const now = Date.parse("2030-01-01T00:00:00Z");
test.each([
  [undefined, undefined, ""],
  ["", "state", ""],
  ["2029-12-31T23:00:00Z", "time", "1 h ago"],
  ["2048", "bytes", "2 KiB"],
  [1_200, undefined, "1,200"],
  [true, undefined, "yes"],
  ["active", "state", "active"],
  [undefined, "count", "0"],
] as const)("%j of kind %s reads as %j", (value, kind, text) => expect(operatorText(value, kind, now)).toBe(text));

test("a running machine is complete", () => {
  expect(operatorTone("running")).toBe("good");
  expect(operatorTone("failed")).toBe("bad");
});

test("a member may be nested", () => {
  expect(valueOf({ usage: { services: 2 } }, "usage.services")).toBe(2);
  expect(valueOf({}, "usage.services")).toBeUndefined();
});
