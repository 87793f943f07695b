import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  type Finding,
  type SchemathesisRun,
  mostMs,
  runSchemathesis,
  phases,
} from "@holdfast/testing/servers/schemathesis.ts";
import { type Accepted, accepted } from "./accepted.ts";
import { type ShareName, shares } from "./shares.ts";

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly tags: readonly string[] }>>>>;
}

interface Organizations {
  readonly organizations: readonly { readonly id: string }[];
}

/** Cases of one share of the API. */
export function schemathesisCases(name: ShareName): void {
  const share = shares[name];
  let platform: Platform;
  let directory: string;
  let run: SchemathesisRun;
  let operations: readonly { readonly name: string; readonly tag: string }[];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "openapi-conformance-"));
    const fast = { HOLDFAST_RATE_READS: "100000", HOLDFAST_RATE_CHANGES: "100000", HOLDFAST_RATE_SOURCE: "100000" };
    platform = await startPlatform({ environment: fast });
    const { base_url: baseUrl, ca_file: caFile, api_key_id: key, username } = platform.admin;
    const document = await platform.rest.get<Document>("/openapi.json");
    operations = Object.entries(document.json.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([verb, { tags }]) => ({ name: `${verb.toUpperCase()} ${path}`, tag: tags[0] ?? "" })),
    );
    const listed = await platform.rest.get<Organizations>("/organizations");
    run = await runSchemathesis({
      baseUrl,
      caFile,
      authorization: platform.owner,
      directory,
      ...share,
      own: [key, username, ...listed.json.organizations.map(({ id }) => id)],
    });
  }, mostMs + 60_000);
  afterAll(async () => {
    await platform?.remove();
    await rm(directory, { recursive: true, force: true });
  }, 60_000);

  const ofShare = () => operations.filter(({ tag }) => share.tags.includes(tag)).map((each) => each.name);

  it("belongs to the shares, which have every operation once", () => {
    expect([...new Set(operations.map(({ tag }) => tag))].sort()).toEqual(
      Object.values(shares)
        .flatMap(({ tags }) => tags)
        .sort(),
    );
  });

  it("is tested in every phase and with every check", () => {
    expect(run.errors).toEqual([]);
    const { coverage, fuzzing } = run.requests;
    const missed = ofShare().filter((each) => !coverage.has(each) || !fuzzing.has(each));
    expect(missed).toEqual([]);
    expect([...run.checks]).toEqual(expect.arrayContaining(everyCheck));
    const counts = phases.map((phase) => [...run.requests[phase].values()].reduce((sum, each) => sum + each, 0));
    for (const [index, count] of counts.entries())
      expect(count, `requests of ${phases[index]}`).toBeGreaterThan((leastRequests[index] ?? 0) * ofShare().length);
  });

  it("responds as /openapi.json declares, and accepts every input that it allows", () => {
    const open = run.findings.filter((finding) => !accepted.some((row) => isOf(row, finding)));
    const byKind = Map.groupBy(open, ({ check, operation, status, message }) =>
      [check, operation, status, message].join(" "),
    );
    expect([...byKind].map(([kind, [first]]) => `${kind} (${first?.request})`)).toEqual([]);
  });

  it("has each accepted finding", () => {
    const ofThisShare = new Set(ofShare());
    const rows = accepted.filter((row) => row.operations.some((each) => ofThisShare.has(each)));
    const stale = rows.filter((row) => row.isTimed !== true && !run.findings.some((finding) => isOf(row, finding)));
    expect(stale.map(({ reason }) => reason)).toEqual([]);
    const known = new Set(operations.map((each) => each.name));
    expect(rows.flatMap((row) => row.operations.filter((each) => !known.has(each)))).toEqual([]);
  });
}

function isOf(row: Accepted, { check, operation, status, message }: Finding): boolean {
  return (
    row.check === check && row.status === status && row.operations.includes(operation) && row.message.test(message)
  );
}

const everyCheck = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "negative_data_rejection",
  "positive_data_acceptance",
  "missing_required_header",
  "unsupported_method",
  "allow_header_conformance",
  "use_after_free",
  "ensure_resource_availability",
  "ignored_auth",
];

/** Least number of requests of each phase, for each operation of the share. */
const leastRequests = [0.5, 20, 5, 0.5];
