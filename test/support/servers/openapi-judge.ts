import { execFile } from "node:child_process";
import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pythonEnvironment } from "./python-environment.ts";

/** An answer that the document does not allow, or an input that it allows and the API refuses. */
export interface Finding {
  /** Name of the check. */
  readonly check: string;
  /** "POST /managed-services". */
  readonly operation: string;
  readonly status: number;
  /** Code and detail of the problem document; the message of the check where there is none. */
  readonly words: string;
  /** "POST https://..." with the body, for a person who looks into it. */
  readonly request: string;
}

export const phases = ["examples", "coverage", "fuzzing", "stateful"] as const;
export type Phase = (typeof phases)[number];

export interface Judgement {
  readonly findings: readonly Finding[];
  /** Operations that each phase sent requests to, with the number of these. */
  readonly requests: Readonly<Record<Phase, ReadonlyMap<string, number>>>;
  /** Checks that ran at least once. */
  readonly checks: ReadonlySet<string>;
  /** Errors of the judge itself, such as a schema that it cannot make inputs of. */
  readonly errors: readonly string[];
}

interface Judged {
  readonly baseUrl: string;
  readonly caFile: string;
  readonly authorization: string;
  /** For the events of the run. */
  readonly directory: string;
  /** Groups of the document's operations. */
  readonly tags: readonly string[];
  /** Further operations, by their ids. */
  readonly helpers: readonly string[];
  /** Ids of the judge's own key, user and organization. */
  readonly own: readonly string[];
}

/** Operations that end the judge's own credential when they are sent to its own ids; the hooks send others. */
const endsOwn = ["deleteApiKey", "rotateApiKey", "deleteOrganization", "removeMember", "updateMember"];

const packages = ["schemathesis==4.32.5"];
const hooks = join(import.meta.dirname, "openapi-judge-hooks.py");
const mostMs = 420_000;

/** Tries the operations by /openapi.json in all phases and with all checks of schemathesis, always with the same seed. */
export async function judgeOpenApi(judged: Judged): Promise<Judgement> {
  const programs = await pythonEnvironment(packages);
  const { directory } = judged;
  const events = join(directory, "events.ndjson");
  const config = join(directory, "schemathesis.toml");
  await writeFile(config, `hooks = ${JSON.stringify(hooks)}\n`);
  const options = {
    checks: "all",
    phases: phases.join(","),
    "max-examples": "8",
    // A claim of messages waits for 20 s.
    "request-timeout": "45",
    "max-response-time": "45",
    // The order of requests is the same in each run.
    workers: "1",
    seed: "1",
    "tls-verify": judged.caFile,
    header: `Authorization: ${judged.authorization}`,
    report: "ndjson",
    "report-ndjson-path": events,
  };
  const args = [
    `--config-file=${config}`,
    "run",
    `${judged.baseUrl}/openapi.json`,
    ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    ...judged.tags.map((tag) => `--include-tag=${tag}`),
    ...judged.helpers.map((id) => `--include-operation-id=${id}`),
    "--continue-on-failure",
    "--no-shrink",
  ];
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: directory,
    // The hooks are in the tree, where nothing is written.
    PYTHONDONTWRITEBYTECODE: "1",
    HOLDFAST_JUDGE_OWN: judged.own.join(","),
    HOLDFAST_JUDGE_ENDS_OWN: endsOwn.join(","),
  };
  const failure = await new Promise<Error | null>((resolve) => {
    const limits = { timeout: mostMs, maxBuffer: 1 << 30, cwd: directory };
    execFile(join(programs, "schemathesis"), args, { env, ...limits }, (error) => resolve(error));
  });
  // It ends with 1 where it found something.
  if (failure !== null && (failure as { code?: unknown }).code !== 1) throw failure;
  return readEvents(events);
}

interface Event {
  readonly ScenarioFinished?: { readonly phase: Phase; readonly recorder: Recorder };
  readonly NonFatalError?: unknown;
  readonly FatalError?: unknown;
}

/** What is empty is absent. */
interface Recorder {
  readonly cases?: Readonly<Record<string, { readonly value: Case }>>;
  readonly checks?: Readonly<Record<string, readonly Check[]>>;
  readonly interactions?: Readonly<Record<string, Interaction>>;
}

interface Case {
  readonly method: string;
  /** As the document has it. */
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

async function readEvents(path: string): Promise<Judgement> {
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
        if (check.status === "failure") findings.push(findingOf(operation, check, value, interactions[id]));
      }
    }
  }
  return { findings, requests, checks, errors };
}

function newCounts(): Record<Phase, Map<string, number>> {
  return { examples: new Map(), coverage: new Map(), fuzzing: new Map(), stateful: new Map() };
}

function findingOf(operation: string, check: Check, { body }: Case, { request, response }: Interaction): Finding {
  const { status_code: status = 0, content } = response ?? {};
  const text = Buffer.from(content?.$base64 ?? "", "base64").toString("utf8");
  const words = wordsOf(text) ?? check.failure_info?.failure.message ?? "";
  const sent = body === undefined ? "" : ` ${JSON.stringify(body).slice(0, 300)}`;
  return { check: check.name, operation, status, words, request: `${request.uri}${sent}` };
}

/** Code and detail of a problem document; undefined for another answer. */
function wordsOf(text: string): string | undefined {
  try {
    const { code, detail } = JSON.parse(text) as { code?: string; detail?: string };
    return code === undefined ? undefined : `${code}: ${detail}`;
  } catch {
    return undefined;
  }
}
