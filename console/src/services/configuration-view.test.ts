import { expect, test } from "vitest";
import { type Choice, namesForRestart, parametersOf } from "./configuration-view.ts";

const state = { reason: null, warning: null, status: "applied" } as const;
const configuration = {
  operation: null,
  parameters: {
    work_mem: { ...state, value: "16MB", default: "4MB" },
    max_connections: { ...state, value: "200", default: "100", status: "pending_restart" },
    autovacuum: { ...state, value: "on", default: "on" },
  },
} as const;

test.each<[Choice, string, string[]]>([
  ["all", "", ["autovacuum", "max_connections", "work_mem"]],
  ["all", " MEM", ["work_mem"]],
  ["changed", "", ["max_connections", "work_mem"]],
  ["waiting", "", ["max_connections"]],
  ["waiting", "work", []],
])("the parameters of %s that contain '%s'", (choice, text, names) => {
  expect(parametersOf(configuration, choice, text).map(({ name }) => name)).toEqual(names);
});

test("names what a restart applies", () => {
  expect(namesForRestart(configuration)).toEqual(["max_connections"]);
});
