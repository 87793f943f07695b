import { beforeAll, describe, expect, test } from "vitest";
import type { CliCommand } from "./command.ts";
import { everyCommand, leavesOf } from "./every-command.ts";

/** What loses something that cannot be had again, by the verb. */
const destroying = new Set(["delete", "remove", "revoke", "rotate", "rotate-secret", "reset", "reset-user", "restore"]);

/** A restore of a service makes a new one. */
const makesNew = (command: CliCommand) => command.name() === "restore" && command.parent?.name() === "services";

let commands: readonly CliCommand[] = [];

beforeAll(async () => {
  commands = leavesOf(await everyCommand());
});

const pathOf = (command: CliCommand): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent as CliCommand)} ${command.name()}`;

describe("every command", () => {
  test("says what it does, and shows an example of itself", () => {
    expect(commands.length).toBeGreaterThan(70);
    const silent = commands.filter(
      (command) => command.description() === "" || !command.examples.some((line) => line.startsWith(pathOf(command))),
    );
    expect(silent.map(pathOf)).toEqual([]);
  });

  test("takes no secret in a flag or an argument", () => {
    const secret = /secret|password|token/;
    const taking = commands.filter(
      ({ options, registeredArguments }) =>
        options.some((option) => (option.required || option.optional) && secret.test(option.flags)) ||
        registeredArguments.some((argument) => secret.test(argument.name())),
    );
    // The first takes the token's id, the others how many tokens there may be.
    expect(taking.map(pathOf).toSorted()).toEqual([
      "holdfast admin orgs quota",
      "holdfast inference keys create",
      "holdfast inference keys update",
      "holdfast inference try",
      "holdfast tokens delete",
    ]);
  });

  test("asks before it destroys, and can be told not to", () => {
    const asking = commands.filter(({ options }) => options.some(({ long }) => long === "--yes"));
    const destroys = commands.filter((command) => destroying.has(command.name()) && !makesNew(command));
    expect(destroys.filter((command) => !asking.includes(command))).toEqual([]);
  });
});
