import { execFile, type ExecFileException } from "node:child_process";
import { createReadStream, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { reportProgress } from "../platform/test-reports.ts";
import { pythonEnvironment } from "./python-environment.ts";

/** A response that the document does not allow, or an input that the document allows and the API rejects. */
export interface Finding {
  /** Name of the check. */
  readonly check: string;
  /** "POST /managed-services". */
  readonly operation: string;
  readonly status: number;
  /** Code and detail of the problem, of one of its `errors` if it has some; without a problem, the check's message. */
  readonly message: string;
  /** "POST https://..." with the body, for the report. */
  readonly request: string;
}

export const phases = ["examples", "coverage", "fuzzing", "stateful"] as const;
export type Phase = (typeof phases)[number];

export interface SchemathesisRun {
  readonly findings: readonly Finding[];
  /** Operations that each phase sent requests to, with the number of these. */
  readonly requests: Readonly<Record<Phase, ReadonlyMap<string, number>>>;
  /** Checks that ran at least once. */
  readonly checks: ReadonlySet<string>;
  /** Errors of schemathesis itself, such as a schema that it cannot generate inputs for. */
  readonly errors: readonly string[];
}

interface SchemathesisOptions {
  readonly baseUrl: string;
  readonly caFile: string;
  readonly authorization: string;
  /** Directory for the events of the run. */
  readonly directory: string;
  /** Tags of the operations to test. */
  readonly tags: readonly string[];
  /** Ids of additional operations that the cases call. */
  readonly helpers: readonly string[];
  /** Ids of the run's own key, user and organization. */
  readonly own: readonly string[];
}

/** Operations that would end the run's own credential; the hooks send other ids to them. */
const endsOwn = ["deleteApiKey", "rotateApiKey", "deleteOrganization", "removeMember", "updateMember"];

const packages = ["schemathesis==4.32.5"];
const hooks = join(import.meta.dirname, "schemathesis-hooks.py");
/** The examples bound a run, which takes minutes on a fast machine. This limit is for a program that never ends. */
export const mostMs = 1_800_000;
/** A program that sends no request for this long hangs: a response takes at most 45 s. */
const silenceMs = 300_000;
const intervalMs = 5_000;
/** Characters of the program's last output in the error of a run that ended early. */
const mostOutput = 2_000;

/**
 * Tests the operations of /openapi.json in all phases and with the checks of schemathesis, always with the same seed.
 */
export async function runSchemathesis(target: SchemathesisOptions): Promise<SchemathesisRun> {
  const programs = await pythonEnvironment(packages);
  const { directory } = target;
  const events = join(directory, "events.ndjson");
  const config = join(directory, "schemathesis.toml");
  await writeFile(config, configOf(target.helpers));
  const options = {
    checks: "all",
    // This check needs two identities, and a run has one; organization-isolation.test.ts compares two for every RPC.
    "exclude-checks": "object_level_authorization",
    phases: phases.join(","),
    "max-examples": "8",
    // A claim of messages waits for 20 s.
    "request-timeout": "45",
    "max-response-time": "45",
    // The order of requests is the same in each run.
    workers: "1",
    seed: "1",
    "tls-verify": target.caFile,
    header: `Authorization: ${target.authorization}`,
    report: "ndjson",
    "report-ndjson-path": events,
  };
  const args = [
    `--config-file=${config}`,
    "run",
    `${target.baseUrl}/openapi.json`,
    ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    ...target.tags.map((tag) => `--include-tag=${tag}`),
    ...target.helpers.map((id) => `--include-operation-id=${id}`),
    "--continue-on-failure",
    "--no-shrink",
  ];
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: directory,
    // The hooks are in the checkout, where nothing is written.
    PYTHONDONTWRITEBYTECODE: "1",
    HOLDFAST_SCHEMATHESIS_OWN: target.own.join(","),
    HOLDFAST_SCHEMATHESIS_ENDS_OWN: endsOwn.join(","),
  };
  await runToEnd(join(programs, "schemathesis"), args, events, { env, cwd: directory });
  return readEvents(events);
}

/** Configuration file, in TOML. Helpers create what the cases need; their coverage belongs to their own share. */
function configOf(helpers: readonly string[]): string {
  const lines = [`hooks = ${JSON.stringify(hooks)}`];
  if (helpers.length > 0)
    lines.push(
      "[[operations]]",
      `include-operation-id = ${JSON.stringify(helpers)}`,
      "phases.coverage.enabled = false",
    );
  return lines.map((line) => `${line}\n`).join("");
}

/** Rejects with the cause if the program ended without a report of its findings, which are exit status 1. */
async function runToEnd(
  program: string,
  args: readonly string[],
  events: string,
  options: { readonly env: NodeJS.ProcessEnv; readonly cwd: string },
): Promise<void> {
  const ending = new AbortController();
  const watch = setInterval(watchOf(events, ending), intervalMs);
  const limits = { timeout: mostMs, maxBuffer: 1 << 30, signal: ending.signal };
  try {
    await new Promise<void>((resolve, reject) => {
      execFile(program, args, { ...options, ...limits }, (error, stdout, stderr) => {
        if (error === null || error.code === 1) return resolve();
        const output = `${stdout}${stderr}`.slice(-mostOutput);
        reject(new Error(`schemathesis ${endOf(error, ending.signal)}; its last output:\n${output}`));
      });
    });
  } finally {
    clearInterval(watch);
  }
}

/** Reports progress while the file of events grows; ends the program once it has not grown for `silenceMs`. */
function watchOf(events: string, ending: AbortController): () => void {
  let size = 0;
  let grownAt = performance.now();
  return () => {
    const sizeNow = statSync(events, { throwIfNoEntry: false })?.size ?? 0;
    if (sizeNow > size) {
      size = sizeNow;
      grownAt = performance.now();
      reportProgress();
    } else if (performance.now() - grownAt > silenceMs) ending.abort();
  };
}

/** The end of the program in words, for the error. */
function endOf({ code, killed, signal }: ExecFileException, ending: AbortSignal): string {
  if (ending.aborted) return `sent no request for ${silenceMs / 1_000} s`;
  if (typeof code === "number") return `exited with ${code}`;
  return killed === true ? `did not end within ${mostMs / 1_000} s` : `was ended by ${signal ?? code}`;
}

interface Event {
  readonly ScenarioFinished?: { readonly phase: Phase; readonly recorder: Recorder };
  readonly NonFatalError?: unknown;
  readonly FatalError?: unknown;
}

/** Empty members are absent. */
interface Recorder {
  readonly cases?: Readonly<Record<string, { readonly value: Case }>>;
  readonly checks?: Readonly<Record<string, readonly Check[]>>;
  readonly interactions?: Readonly<Record<string, Interaction>>;
}

interface Case {
  readonly method: string;
  /** Path as in the document. */
  readonly path: string;
  readonly body?: unknown;
}

interface Check {
  readonly name: string;
  readonly status: string;
  readonly failure_info?: { readonly failure: { readonly message: string } };
}

interface Interaction {
  readonly request: { readonly uri: string };
  readonly response: { readonly status_code: number; readonly content?: { readonly $base64: string } } | null;
}

async function readEvents(path: string): Promise<SchemathesisRun> {
  const findings: Finding[] = [];
  const errors: string[] = [];
  const checks = new Set<string>();
  const requests = newCounts();
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const { ScenarioFinished: scenario, NonFatalError, FatalError } = JSON.parse(line) as Event;
    const error = NonFatalError ?? FatalError;
    if (error !== undefined) errors.push(JSON.stringify(error).slice(0, 500));
    if (scenario === undefined) continue;
    const { cases = {}, checks: results = {}, interactions = {} } = scenario.recorder;
    for (const [id, { value }] of Object.entries(cases)) {
      if (interactions[id] === undefined) continue;
      const operation = `${value.method} ${value.path}`;
      const counted = requests[scenario.phase];
      counted.set(operation, (counted.get(operation) ?? 0) + 1);
      for (const check of results[id] ?? []) {
        checks.add(check.name);
        if (check.status === "failure") findings.push(...findingsOf(operation, check, value, interactions[id]));
      }
    }
  }
  return { findings, requests, checks, errors };
}

function newCounts(): Record<Phase, Map<string, number>> {
  return { examples: new Map(), coverage: new Map(), fuzzing: new Map(), stateful: new Map() };
}

/** The findings of a response: one for each of its `errors`, so that no accepted one hides the others. */
function findingsOf(operation: string, check: Check, { body }: Case, { request, response }: Interaction): Finding[] {
  const { status_code: status = 0, content } = response ?? {};
  const text = Buffer.from(content?.$base64 ?? "", "base64").toString("utf8");
  const messages = problemTextsOf(text) ?? [check.failure_info?.failure.message ?? ""];
  const sent = body === undefined ? "" : ` ${JSON.stringify(body).slice(0, 300)}`;
  return messages.map((message) => ({
    check: check.name,
    operation,
    status,
    message,
    request: `${request.uri}${sent}`,
  }));
}

interface ProblemJson {
  readonly code?: string;
  readonly detail?: string;
  readonly errors?: readonly FaultJson[];
}

interface FaultJson {
  readonly field: string;
  readonly detail: string;
}

/** A fault as the problem's detail has it: with its field, unless it begins with the fault. */
function sentenceIn(all: string | undefined, { field, detail }: FaultJson): string {
  const sentences = [`${field}: ${detail}`, `${field === "" ? "the body" : field} ${detail}`];
  const found = sentences.find((each) => all?.includes(each) === true);
  return found ?? (all?.startsWith(detail) === true ? detail : `${field}: ${detail}`);
}

/** Code and detail of a problem document, for each of its `errors`; undefined for another response. */
function problemTextsOf(text: string): string[] | undefined {
  try {
    const { code, detail, errors = [] } = JSON.parse(text) as ProblemJson;
    if (code === undefined) return undefined;
    if (errors.length === 0) return [`${code}: ${detail}`];
    return errors.map((each) => `${code}: ${sentenceIn(detail, each)}`);
  } catch {
    return undefined;
  }
}
