import { describe, expect, test } from "vitest";
import { everyCommand, leavesOf } from "./every-command.ts";
import type { CliCommand } from "./command.ts";

const verb = ["inference", "providers", "set", "provider_c"];

/** What a line gives to its verb, and what to every command. */
async function given(args: readonly string[]): Promise<{ own: unknown; all: unknown }> {
  const root = await everyCommand();
  const set = leavesOf(root).find((each) => each.name() === "set" && each.parent?.name() === "providers");
  if (set === undefined) throw new Error("there is no such command");
  set.action(() => undefined);
  await root.parseAsync([...args], { from: "user" });
  return { own: set.opts()["baseUrl"], all: root.opts()["baseUrl"] };
}

describe("a flag that a verb has of its own", () => {
  test.each([
    ["after the verb is the verb's", [...verb, "--base-url", "https://m"], "https://m", undefined],
    ["with its value in one word too", [...verb, "--base-url=https://m"], "https://m", undefined],
    ["before the verb is every command's", ["--base-url", "https://h", ...verb], undefined, "https://h"],
    [
      "may be given twice, once for each",
      ["--base-url", "https://h", ...verb, "--base-url", "https://m", "--output", "json"],
      "https://m",
      "https://h",
    ],
    [
      "is found whatever the value of another flag reads as",
      ["--profile", "inference", ...verb, "--base-url", "https://m"],
      "https://m",
      undefined,
    ],
  ])("%s", async (_, args, own, all) => {
    expect(await given(args)).toEqual({ own, all });
  });

  test("is rare", async () => {
    const root = await everyCommand();
    const isShared = (command: CliCommand) =>
      command.options.some(({ long }) => root.options.some((option) => option.long === long));
    expect(
      leavesOf(root)
        .filter(isShared)
        .map((command) => command.name()),
    ).toEqual(["set"]);
  });
});
