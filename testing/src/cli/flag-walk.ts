import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CliCommand } from "@holdfast/cli/command.ts";
import { everyCommand, leavesOf, pathOf } from "@holdfast/cli/every-command.ts";
import { Interrupted } from "@holdfast/cli/exit-code.ts";
import { runCli } from "@holdfast/cli/run.ts";
import { createExampleResponses } from "./example-responses.ts";

/** The effects of one run: requests, questions, output, exit code and files. */
type Trace = readonly string[];

/** A flag with the words that set it. */
interface GivenFlag {
  readonly option: CliCommand["options"][number];
  readonly words: readonly string[];
}

const id = "019a2f5e-7c1a-7d3e-9a56-3f0b8c2d4e61";
const time = "2030-01-31T12:00:00Z";
const root = mkdtempSync(join(tmpdir(), "holdfast-flags-"));
const file = join(root, "file.json");
const listFile = join(root, "list.json");

/** Values of flags whose text has a format. */
const values: Readonly<Record<string, string>> = {
  "--maintenance-window": "sunday 3",
  "--smtp": "smtp.example.com:587",
  "--url": "https://RUN/x",
  "--base-url": "https://example.com/x",
  "--join-file": join(root, "new", "join.json"),
  "--sql": "SELECT 1",
  "--timeout": "0",
  "--limit": "1",
  "--file": listFile,
  "--lost-owner": `managed-service/${id}`,
};

/** Commands on files of this host, which this test must not change. */
const localCommands = new Set([
  "admin recover",
  "admin restore",
  "controllers prepare",
  "controllers replace",
  "profile remove",
]);

/** Flags that the runs of a command have; the command is walked once with each of these sets. */
const bases: Readonly<Record<string, readonly (readonly string[])[]>> = {
  "services restore": [
    ["--to", time],
    ["--backup", id],
  ],
  "services fork": [["--name", "copy"]],
  query: [
    ["--sql", "SELECT 1"],
    ["--ask", "x"],
  ],
  "inference models": [["--url", "https://RUN/x"]],
  "inference try": [["--url", "https://RUN/x"]],
  "auth users delete": [
    ["--email", "x"],
    ["--id", id],
  ],
  "stacks upgrade": [[], ["--accept-cost", "7"]],
  "alerts create": [
    ["--gt", "7"],
    ["--lt", "7"],
  ],
  "apps secret-env set": [["--from-file", `KEY=${file}`]],
  "queues send": [[], ["--file", listFile]],
  "topics update": [
    ["--partitions", "7"],
    ["--set", "a=b"],
  ],
  "auth enable": [["--smtp", "smtp.example.com:25", "--from", "shop@example.com"]],
  "auth update": [[], ["--smtp", "smtp.example.com:25", "--from", "shop@example.com"]],
  "auth clients update": [
    ["--name", "shop"],
    ["--redirect", "https://shop.example/callback"],
  ],
  "auth providers set": [["--client-id", "shop"]],
  "projects init": [["--file", join(root, "absent.yaml")]],
  "projects validate": [["--file", file]],
  "projects plan": [["--file", file]],
  "projects apply": [["--file", file]],
};

type Run = (method: string, url: URL, body: string) => Response;

const runs = new Map<string, Run>();
let respond: (method: string, path: string) => unknown;

/** Runs a command line against the example API, and ends it once it repeats a request without an end. */
async function run(words: readonly string[], columns?: number): Promise<Trace> {
  const name = `run-${runs.size}`;
  const home = join(root, name);
  mkdirSync(home);
  const trace: string[] = [];
  const ending = new AbortController();
  const stop = () => ending.abort(new Interrupted());
  let idle = setTimeout(stop, idleMs);
  const counts = new Map<string, number>();
  runs.set(name, (method, url, body) => {
    clearTimeout(idle);
    idle = setTimeout(stop, idleMs);
    const line = `${method} ${url.pathname}${url.search} ${body}`;
    const count = (counts.get(line) ?? 0) + 1;
    counts.set(line, count);
    if (count === 1) trace.push(line);
    if (count > 2) setImmediate(stop);
    if (url.searchParams.get("follow") === "true")
      return new Response("event: end\n\n", { headers: { "content-type": "text/event-stream" } });
    const response = respond(method, url.pathname);
    return response === undefined ? new Response(null, { status: 204 }) : Response.json(response);
  });
  const ask = async (question: string) => `${trace.push(`ask ${question}`) > 0 ? "secret" : ""}`;
  const write = (text: string) => void trace.push(text);
  const code = await runCli(
    words.map((word) => word.replace("RUN", name)),
    {
      environment: {
        PATH: `${join(root, "bin")}:/usr/bin:/bin`,
        HOME: home,
        HOLDFAST_BASE_URL: `https://${name}`,
        HOLDFAST_TOKEN: "hft_x",
        HOLDFAST_ORGANIZATION: id,
        NO_COLOR: "1",
        DISPLAY: ":0",
      },
      defaultDirectory: join(home, ".holdfast"),
      signal: ending.signal,
      stdout: { write, ...(columns !== undefined && { isTTY: true, columns }) },
      stderr: { write },
      terminal: {
        isInteractive: true,
        ask,
        askSecret: ask,
        readAll: async () => Buffer.from("input"),
        confirm: async (question) => trace.push(`confirm ${question}`) > 0,
      },
    },
  );
  clearTimeout(idle);
  const files = filesBelow(home).map((path) => `${path.slice(home.length)}: ${readFileSync(path, "utf8")}`);
  const all = [...trace, ...files, `exit ${code}`];
  return all.map((text) => text.replaceAll(name, "RUN").replaceAll(/\/tmp\/holdfast-connect-\w+/g, "TMP"));
}

/** Ends a run that neither requests anything nor ends by itself, which is a fault of its command. */
const idleMs = 100_000;

function filesBelow(directory: string): string[] {
  return readdirSync(directory)
    .map((name) => join(directory, name))
    .flatMap((path) => (statSync(path).isDirectory() ? filesBelow(path) : [path]));
}

/** Words for an argument of a command. */
function wordsOf(argument: CliCommand["registeredArguments"][number]): string[] {
  if (argument.argChoices !== undefined) return [argument.argChoices[0] ?? ""];
  if (argument.name() === "service-id" || argument.name() === "node") return [id];
  if (argument.name() === "changes") return ["work_mem=8MB"];
  if (argument.name() === "name=value") return ["LOG_LEVEL=debug"];
  if (argument.name() === "files") return [file];
  return argument.required ? [id] : [];
}

function givenFlag(option: CliCommand["options"][number]): GivenFlag {
  const { long, argChoices, defaultValue, required, optional } = option;
  const name = long ?? "";
  if (!required && !optional) return { option, words: [name] };
  const choice = argChoices?.findLast((each) => each !== defaultValue);
  return { option, words: [name, choice ?? values[name] ?? valueFor(option)] };
}

/** A value that the flag's parser accepts. */
function valueFor({ flags, parseArg }: CliCommand["options"][number]): string {
  if (/<(path|file)>/.test(flags)) return file;
  const candidates = /<time>/.test(flags)
    ? [time, "7m"]
    : /=file>/.test(flags)
      ? [`c=${file}`]
      : ["7", "a=b", "a=7", "x"];
  const parse = parseArg as ((text: string, before: undefined) => unknown) | undefined;
  const found = candidates.find((text) => {
    try {
      return parse?.(text, undefined) !== null;
    } catch {
      return false;
    }
  });
  if (found === undefined) throw new Error(`${flags} has no value in this test`);
  return found;
}

/** Flags of one command that change nothing, as lines. */
async function ignoredFlags(command: CliCommand, pairs: "all" | "modes"): Promise<string[]> {
  const path = pathOf(command);
  const operands = command.registeredArguments.flatMap(wordsOf);
  const flags = command.options.map(givenFlag);
  const required = flags.filter(({ option }) => option.mandatory);
  const faults: string[] = [];
  const accepted = new Set(required);
  for (const base of bases[path.join(" ")] ?? [[]]) {
    const free = flags.filter(({ option }) => !option.mandatory && !base.includes(option.long ?? ""));
    for (const flag of flags) if (base.includes(flag.option.long ?? "")) accepted.add(flag);
    const start = [...path, ...operands, ...base, ...required.flatMap(({ words }) => words)];
    const modes = free.filter(({ option }) => pairs === "all" || !option.required);
    const walkBeside = async (beside: GivenFlag | undefined) => {
      const before = [...start, ...(beside?.words ?? [])];
      const without = await run(before);
      if (isRefusal(without)) return;
      if (beside !== undefined) accepted.add(beside);
      const walkFlag = async (flag: GivenFlag) => {
        if (flag.option.attributeName() === beside?.option.attributeName()) return;
        const words = [...before, ...flag.words];
        const withFlag = await run(words);
        if (!isRefusal(withFlag)) accepted.add(flag);
        const isIgnored = withFlag.join("\n") === without.join("\n");
        if (isIgnored && !isHarmless(flag, words))
          faults.push(`${words.join(" ")}: ${flag.option.long} changes nothing`);
      };
      await Promise.all(free.map(walkFlag));
    };
    await Promise.all([undefined, ...modes].map(walkBeside));
  }
  for (const flag of flags)
    if (!accepted.has(flag)) faults.push(`${path.join(" ")}: ${flag.option.long} is never accepted`);
  return faults;
}

/** True for --yes where nothing is asked, and for a flag that repeats what another one implies. */
function isHarmless({ option }: GivenFlag, words: readonly string[]): boolean {
  return option.long === "--yes" || (words.includes("channels") && option.long === "--type");
}

const isRefusal = (trace: Trace) => trace.at(-1) === "exit 2";

/**
 * Flags of all commands that are accepted and change nothing, as lines: each flag alone and beside each other one of
 * the command (`all`), or only beside flags that select a mode.
 */
export function findIgnoredFlags(pairs: "all" | "modes"): Promise<string[]> {
  return withExampleApi(async (commands) =>
    (await Promise.all(commands.map((command) => ignoredFlags(command, pairs)))).flat(),
  );
}

/** Output of all commands that list something, on a terminal of this width, by their command lines. */
export function printLists(columns: number): Promise<[line: string, output: string][]> {
  return withExampleApi(async (commands) => {
    const lists = commands.filter((each) => each.name() === "list" || listing.has(pathOf(each).join(" ")));
    return Promise.all(
      lists.map(async (command): Promise<[string, string]> => {
        const path = pathOf(command);
        const trace = await run([...path, ...command.registeredArguments.flatMap(wordsOf)], columns);
        const isOutput = (text: string) => !/^(GET|POST) \/|^exit |^\/|^ask /.test(text);
        return [path.join(" "), trace.filter(isOutput).join("")];
      }),
    );
  });
}

/** Commands with tables beside those named list. */
const listing = new Set([
  "queries top",
  "queries running",
  "backups drills",
  "services nodes",
  "services operations",
  "nodes status",
  "config get",
  "audit",
  "events",
  "services logs",
  "health",
  "webhooks deliveries",
]);

/** Runs work with the commands that use the API, whose requests get examples as responses. */
async function withExampleApi<T>(work: (commands: readonly CliCommand[]) => Promise<T>): Promise<T> {
  respond = await createExampleResponses();
  mkdirSync(join(root, "bin"), { recursive: true });
  writeFileSync(file, '{"name": "shop", "resources": []}');
  writeFileSync(listFile, '[{"a": 1}]');
  const program = `#!/bin/sh\nprintf '%s\\n' "$@" > "$HOME/argv"\n`;
  writeFileSync(join(root, "bin", "psql"), program, { mode: 0o755 });
  writeFileSync(join(root, "bin", "xdg-open"), "#!/bin/sh\n", { mode: 0o755 });
  const before = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const run = runs.get(url.hostname);
    if (run === undefined) throw new Error(`${url.href} is no run`);
    init?.signal?.throwIfAborted();
    return run(init?.method ?? "GET", url, typeof init?.body === "string" ? init.body : "");
  };
  try {
    return await work(leavesOf(await everyCommand()).filter((each) => !localCommands.has(pathOf(each).join(" "))));
  } finally {
    globalThis.fetch = before;
    rmSync(root, { recursive: true, force: true });
  }
}
