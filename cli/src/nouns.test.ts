import { beforeAll, describe, expect, test } from "vitest";
import type { CliCommand } from "./command.ts";
import { printCompletions } from "./completion/complete.ts";
import { everyCommand, leavesOf, silentDeps } from "./every-command.ts";

/** Verbs that destroy something. */
const destroying = new Set(["delete", "remove", "revoke", "rotate", "rotate-secret", "reset", "reset-user", "restore"]);

/** A restore of a service creates a new service. */
const createsService = (command: CliCommand) => command.name() === "restore" && command.parent?.name() === "services";

let commands: readonly CliCommand[] = [];

beforeAll(async () => {
  commands = leavesOf(await everyCommand());
});

const pathOf = (command: CliCommand): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent as CliCommand)} ${command.name()}`;

describe("every command", () => {
  test("has a description and an example", () => {
    expect(commands.length).toBeGreaterThan(70);
    const silent = commands.filter(
      (command) => command.description() === "" || !command.examples.some((line) => line.startsWith(pathOf(command))),
    );
    expect(silent.map(pathOf)).toEqual([]);
  });

  test("that creates a service from another one takes its name by --name", () => {
    const copies = commands.filter((command) => /services (restore|fork|undelete)$/.test(pathOf(command)));
    expect(copies).toHaveLength(3);
    for (const { options } of copies) expect(options.map(({ long }) => long)).toContain("--name");
  });

  test("accepts no secret as a flag or argument", () => {
    const secret = /secret|password|token/;
    const taking = commands.filter(
      ({ options, registeredArguments }) =>
        options.some((option) => (option.required || option.optional) && secret.test(option.flags)) ||
        registeredArguments.some((argument) => secret.test(argument.name())),
    );
    // tokens delete takes a token's id, apps take names of secret variables; the others take a number of tokens.
    expect(taking.map(pathOf).toSorted()).toEqual([
      "holdfast admin orgs quota",
      "holdfast apps create",
      "holdfast apps deploy",
      "holdfast inference keys create",
      "holdfast inference keys update",
      "holdfast inference try",
      "holdfast tokens delete",
    ]);
  });

  test("asks before it destroys, and accepts --yes", () => {
    const asking = commands.filter(({ options }) => options.some(({ long, hidden }) => long === "--yes" && !hidden));
    const destroys = commands.filter((command) => destroying.has(command.name()) && !createsService(command));
    expect(destroys.filter((command) => !asking.includes(command))).toEqual([]);
  });
});

test.each([
  ["members forget", "members delete-user"],
  ["projects release", "projects remove-resource"],
  ["admin hold", "admin pause-automation"],
  ["admin release-hold", "admin resume-automation"],
  ["admin holds", "admin pauses"],
])("%s is a former name of %s", (former, current) => {
  const command = commands.find((each) => pathOf(each) === `holdfast ${current}`);
  expect(command?.aliases()).toContain(former.split(" ")[1]);
});

test("the former name of a flag or value works and is not listed", async () => {
  const fresh = leavesOf(await everyCommand());
  const parsed = (path: string, args: string[]) => {
    const command = fresh.find((each) => pathOf(each) === path);
    command?.parseOptions(args);
    return command?.opts();
  };
  expect(parsed("holdfast alerts update", ["--on-silence", "fire"])).toMatchObject({ onSilence: "fire" });
  expect(parsed("holdfast services wait", ["--for", "gone"])).toMatchObject({ for: "deleted" });
  const lines: string[] = [];
  const stdout = { write: (text: string) => lines.push(text) };
  await printCompletions(["alerts", "update", "--on"], { ...silentDeps, stdout });
  expect(lines.join("")).toMatch(/--on-no-data/);
  expect(lines.join("")).not.toMatch(/--on-silence/);
});

test("the former name of a command runs it, and completes its flags", async () => {
  const admin = (await everyCommand()).commands.find((command) => command.name() === "admin");
  const leases = admin?.commands.find((command) => command.name() === "leases");
  expect(leases?.aliases()).toEqual(["rights"]);
  const lines: string[] = [];
  const stdout = { write: (text: string) => lines.push(text) };
  await printCompletions(["admin", "rights", "--li"], { ...silentDeps, stdout });
  expect(lines.join("")).toContain("--limit");
});
