import { expect, it, test } from "vitest";
import { parseSettings, settingsText, variableOf } from "./settings-file.ts";

test.each([
  ["words", { HOLDFAST_DOMAIN: "db.example.com", HOLDFAST_API_PORT: "8443" }],
  ["a space, quotes and a backslash", { HOLDFAST_DATA: `/srv/my data/"a"\\b'$HOME` }],
  ["a URL and an empty value", { HOLDFAST_OBJECTS: "s3://b/p?endpoint=https://s3.example.com", HOLDFAST_LISTEN: "" }],
])("settings with %s are read as they were written", (_, settings) => {
  expect(parseSettings(settingsText(settings))).toEqual(settings);
});

it("reads comments and other quotes of an operator", () => {
  expect(parseSettings("# a\n; b\n\nA=b\nC='d e'\n  F=\"g\"  \n")).toEqual({ A: "b", C: "d e", F: "g" });
});

test.each(["export A=b", "A b", 'A="b', "A=b c"])("refuses the line %s by its number", (line) => {
  expect(() => parseSettings(`# a\n${line}\n`)).toThrow(`line 2 of the settings is not NAME=VALUE: ${line}`);
});

it("refuses a value with a line break", () => {
  expect(() => settingsText({ A: "b\nC=d" })).toThrow("A: a setting has no line breaks");
});

it("names the variable of a flag", () => {
  expect(variableOf("etcd-client-port")).toBe("HOLDFAST_ETCD_CLIENT_PORT");
});
