import { describe, expect, test } from "vitest";
import { everyCommand, leavesOf, silentDeps } from "./every-command.ts";
import type { CliCommand } from "./command.ts";
import { globalFlagsOf, ownFlagsOf } from "./global-flags.ts";
import { createProgram } from "./program.ts";

const verb = ["inference", "providers", "set", "provider_c"];

/** The values that a command line sets for its verb and globally. */
async function parse(args: readonly string[]): Promise<{ own: unknown; all: unknown; output: string }> {
  const root = await createProgram(args, silentDeps);
  const set = leavesOf(root).find((each) => each.name() === "set" && each.parent?.name() === "providers");
  if (set === undefined) throw new Error("there is no such command");
  set.action(() => undefined);
  await root.parseAsync([...args], { from: "user" });
  const { baseUrl: all, output } = globalFlagsOf(set);
  return { own: set.opts()["baseUrl"], all, output };
}

describe("a flag with the name of a global one", () => {
  test.each([
    ["after the verb is the verb's", [...verb, "--base-url", "https://m"], "https://m", undefined],
    ["with its value in one word too", [...verb, "--base-url=https://m"], "https://m", undefined],
    ["before the verb is every command's", ["--base-url", "https://h", ...verb], undefined, "https://h"],
    [
      "may stand twice, once for each",
      ["--base-url", "https://h", ...verb, "--base-url", "https://m"],
      "https://m",
      "https://h",
    ],
    [
      "is found beside a flag whose value is a noun",
      ["--profile", "inference", ...verb, "--base-url", "https://m"],
      "https://m",
      undefined,
    ],
  ])("%s", async (_, args, own, all) => {
    expect(await parse(args)).toEqual({ own, all, output: "table" });
  });

  test("exists for one command only", async () => {
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

describe("a global flag", () => {
  test.each([
    ["before the noun", ["--output", "json", ...verb]],
    ["after the noun", ["inference", "--output", "json", "providers", "set", "provider_c"]],
    ["after the verb", [...verb, "--output", "json"]],
    ["twice, and the last one wins", ["--output", "yaml", ...verb, "--output", "json"]],
  ])("may stand %s", async (_, args) => {
    expect(await parse(args)).toMatchObject({ output: "json" });
  });

  test.each([
    [["admin", "hosts", "add", "a", "--zone", "z", "--address", "h:1", "--join-file", "f"], "add"],
    [["admin", "orgs", "quota", "o", "--services", "1"], "quota"],
  ])("is not among the flags that a command gets and sends: %s", async (args, name) => {
    const root = await createProgram([...args, "--output", "json"], silentDeps);
    let own: Readonly<Record<string, unknown>> = {};
    for (const leaf of leavesOf(root).filter((each) => each.name() === name))
      leaf.action(() => {
        own = ownFlagsOf(leaf);
      });
    await root.parseAsync([...args, "--output", "json"], { from: "user" });
    expect(Object.keys(own)).toEqual(name === "add" ? ["zone", "address", "joinFile"] : ["services"]);
  });

  test("has its values wherever it stands", async () => {
    await expect(parse([...verb, "--output", "xml"])).rejects.toThrow(/Allowed choices are/);
  });

  test("is not --version after a verb: that is an unknown option", async () => {
    await expect(parse([...verb, "--version", "16"])).rejects.toThrow(/unknown option '--version'/);
  });
});

test("every command accepts --yes, and one that asks nothing does not send it", async () => {
  const commands = leavesOf(await everyCommand());
  const args = ["services", "restart", "orders", "--yes"];
  const root = await createProgram(args, silentDeps);
  const restart = leavesOf(root).find((each) => each.name() === "restart" && each.parent?.name() === "services");
  if (restart === undefined) throw new Error("there is no such command");
  restart.action(() => undefined);
  await root.parseAsync(args, { from: "user" });
  expect(commands.length).toBeGreaterThan(70);
  expect(ownFlagsOf(restart)).not.toHaveProperty("yes");
});
