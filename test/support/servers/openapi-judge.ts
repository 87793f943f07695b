import { execFile } from "node:child_process";
import { createReadStream } from "node:fs";
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
  /** Code and detail of the problem document; the URL of the request behind it. */
  readonly words: string;
}

interface Judged {
  readonly baseUrl: string;
  readonly caFile: string;
  readonly authorization: string;
  /** For the events of the run. */
  readonly directory: string;
  readonly seconds: number;
  readonly without: readonly string[];
}

interface Recorder {
  readonly label: string;
  readonly checks?: Readonly<Record<string, readonly { readonly name: string; readonly status: string }[]>>;
  readonly interactions?: Readonly<Record<string, Interaction>>;
}

interface Interaction {
  readonly request: { readonly uri: string };
  readonly response: { readonly status_code: number; readonly content?: { readonly $base64: string } } | null;
}

const packages = ["schemathesis==4.32.5"];

/** Tries the API by its /openapi.json with all checks of schemathesis; resolves with what they found and the number of requests. */
export async function judgeOpenApi(judged: Judged): Promise<{ findings: readonly Finding[]; requests: number }> {
  const programs = await pythonEnvironment(packages);
  const events = join(judged.directory, "events.ndjson");
  const options = {
    checks: "all",
    phases: "examples,coverage,fuzzing",
    "max-examples": "5",
    "max-time": String(judged.seconds),
    // A claim of messages waits for 20 s.
    "request-timeout": "40",
    workers: "2",
    seed: "1",
    "tls-verify": judged.caFile,
    header: `Authorization: ${judged.authorization}`,
    report: "ndjson",
    "report-ndjson-path": events,
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  const without = judged.without.flatMap((id) => ["--exclude-operation-id", id]);
  const more = ["--continue-on-failure", "--no-shrink"];
  const failure = await new Promise<Error | null>((resolve) => {
    const environment = { PATH: process.env["PATH"] ?? "", HOME: judged.directory };
    const limits = { timeout: (judged.seconds + 120) * 1_000, maxBuffer: 1 << 30, cwd: judged.directory };
    const all = ["run", `${judged.baseUrl}/openapi.json`, ...args, ...without, ...more];
    execFile(join(programs, "schemathesis"), all, { env: environment, ...limits }, (error) => resolve(error));
  });
  // It ends with 1 where it found something.
  if (failure !== null && (failure as { code?: unknown }).code !== 1) throw failure;
  return readEvents(events);
}

async function readEvents(path: string): Promise<{ findings: readonly Finding[]; requests: number }> {
  const findings: Finding[] = [];
  let requests = 0;
  for await (const line of createInterface({ input: createReadStream(path) })) {
    const { ScenarioFinished: scenario } = JSON.parse(line) as { ScenarioFinished?: { recorder: Recorder } };
    if (scenario === undefined) continue;
    const { label, checks = {}, interactions = {} } = scenario.recorder;
    requests += Object.keys(interactions).length;
    for (const [id, results] of Object.entries(checks))
      for (const { name, status } of results)
        if (status === "failure") findings.push(findingOf(label, name, interactions[id]));
  }
  return { findings, requests };
}

function findingOf(operation: string, check: string, interaction: Interaction | undefined): Finding {
  const { status_code: status = 0, content } = interaction?.response ?? {};
  const text = Buffer.from(content?.$base64 ?? "", "base64").toString("utf8");
  return { check, operation, status, words: `${wordsOf(text)} ${interaction?.request.uri ?? ""}` };
}

function wordsOf(text: string): string {
  try {
    const { code, detail } = JSON.parse(text) as { code?: string; detail?: string };
    return `${code}: ${detail}`;
  } catch {
    return text.slice(0, 200);
  }
}
