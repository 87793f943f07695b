import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";

const run = promisify(execFile);
const main = join(import.meta.dirname, "..", "..", "cli", "src", "main.ts");

let gateway: TestGateway;
let shell: CommandLine;
/** Directory of `holdfast`. */
let directory = "";
let environment: Record<string, string>;

beforeAll(async () => {
  gateway = await startTestGateway();
  directory = mkdtempSync(join(tmpdir(), "holdfast-completion-"));
  const caFile = join(directory, "ca.pem");
  writeFileSync(caFile, gateway.ca);
  writeFileSync(join(directory, "holdfast"), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
  chmodSync(join(directory, "holdfast"), 0o755);
  const key = { HOLDFAST_API_KEY_ID: "hfk_owner", HOLDFAST_API_KEY_SECRET: "secret" };
  const where = { HOLDFAST_BASE_URL: gateway.baseUrl, HOLDFAST_CA_FILE: caFile };
  shell = createCommandLine({ ...key, ...where });
  environment = {
    ...key,
    ...where,
    HOME: shell.home,
    TERM: "dumb",
    PATH: [directory, process.env.PATH].join(delimiter),
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "",
  };
  expect((await shell.runHere(["services", "create", "orders", "--type", "postgresql"])).code).toBe(0);
});
afterAll(async () => {
  shell.remove();
  await gateway.close();
  rmSync(directory, { recursive: true });
});

/** Suggestions of the command for the last word of the line. */
async function suggested(line: string): Promise<string[]> {
  const { stdout } = await shell.runHere(["complete", "--", ...line.split(" ")]);
  return stdout.split("\n").flatMap((each) => (each === "" ? [] : [each.split("\t")[0] ?? ""]));
}

describe("holdfast complete", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  const cases: readonly (readonly [line: string, among: readonly string[]])[] = [
    ["",                                              ["services", "webhooks", "admin"]],
    ["services ",                                     ["create", "connect", "operations"]],
    ["admin operator ",                               ["create", "rotate"]],
    ["services create --",                            ["--type", "--wait", "--output"]],
    ["services list --status ",                       ["Running", "Stopped"]],
    ["--output ",                                     ["json", "yaml"]],
    ["services get ",                                 ["orders"]],
    ["services connect --user app_user o",            ["orders"]],
    ["databases delete orders ",                      ["defaultdb"]],
    ["members set-role anna ",                        ["viewer", "owner"]],
    ["completion ",                                   ["bash", "zsh", "fish"]],
  ];
  test.each(cases)("completes '%s' to %j", async (line, among) => {
    expect(await suggested(line)).toEqual(expect.arrayContaining([...among]));
  });

  test("suggests nothing if nothing matches, or if the API does not respond", async () => {
    expect(await suggested("services get orders ")).toEqual([]);
    expect(await suggested("nonsense ")).toEqual([]);
    expect(await suggested("services create ")).toEqual([]);
    const away = await shell.runHere(["complete", "--", "services", "get", ""], {
      environment: { HOLDFAST_TOKEN: "hft_wrong" },
    });
    expect(away).toEqual({ code: 1, stdout: "", stderr: "" });
  });
});

const scripts = {
  bash: `source <(holdfast completion bash)
    source <(holdfast completion bash)
    ask() { COMP_LINE=$1 COMP_POINT=\${#1}; _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"; }
    ask 'holdfast services conn'; ask 'holdfast services get o'; ask 'holdfast services get $(touch ${"$HOME"}/evil)'`,
  fish: `source (holdfast completion fish | psub)
    complete -C 'holdfast services conn'; complete -C 'holdfast services get o'; complete -C 'holdfast services get (touch $HOME/evil)'`,
  // A pseudo-terminal in which the line editor completes interactively; Tab in the test's terminal would expand as
  // well.
  zsh: `zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -D; bindkey "^I" complete-word; source <(holdfast completion zsh); echo re''ady'
    zpty -r shell seen '*ready*'
    for line in 'holdfast services conn' 'holdfast services get o'; do
      zpty -w -n shell "$line"$'\\t'
      zpty -r shell seen '*(connect|orders)*'
      print -r -- \${(M)seen%(connect|orders)*}
      zpty -w -n shell $'\\x15'
    done
    zpty -w -n shell 'holdfast services get $(touch $HOME/evil)'$'\\t'
    zpty -w -n shell $'\\x15'; zpty -w shell 'echo do''ne'; zpty -r shell seen '*done*'`,
} as const;

describe("the scripts of shells", () => {
  for (const [name, script] of Object.entries(scripts)) {
    const program = (process.env.PATH ?? "")
      .split(delimiter)
      .map((each) => join(each, name))
      .find((each) => existsSync(each));
    // Not every machine has every shell, and the platform needs none of them.
    test.skipIf(program === undefined)(
      `${name} completes verbs and names, and runs nothing that was typed`,
      async () => {
        const flags = name === "bash" ? ["--norc"] : name === "zsh" ? ["-f"] : ["--no-config"];
        const { stdout } = await run(program ?? name, [...flags, "-c", script], { env: environment, timeout: 100_000 });
        expect(stdout).toMatch(/connect[\s\S]*orders/);
        expect(existsSync(join(shell.home, "evil"))).toBe(false);
      },
    );
  }
});
