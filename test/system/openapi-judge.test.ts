import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import { type Finding, judgeOpenApi } from "../support/servers/openapi-judge.ts";

let platform: Platform;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "openapi-judge-"));
  const fast = { HOLDFAST_RATE_READS: "100000", HOLDFAST_RATE_CHANGES: "100000", HOLDFAST_RATE_SOURCE: "100000" };
  platform = await startPlatform({ environment: fast });
}, 300_000);
afterAll(async () => {
  await platform?.remove();
  await rm(directory, { recursive: true, force: true });
}, 60_000);

/** Operations that would take the judge's own credential away. */
const ownEnd = ["deleteApiKey", "rotateApiKey", "deleteOrganization", "removeMember", "updateMember", "changePassword"];

/** Findings that no schema can prevent, each with its reason. */
const listed: readonly { readonly check: string; readonly words: RegExp; readonly reason: string }[] = [
  {
    check: "positive_data_acceptance",
    words: /cursor is not a cursor|is no receipt|token: is unknown|is no task/,
    reason: "cursors, receipts and tokens are texts that the installation made and signed",
  },
  {
    check: "positive_data_acceptance",
    words: /idempotency_key_reused/,
    reason: "the judge sends one key with several bodies",
  },
  {
    check: "positive_data_acceptance",
    words: /If-Match must be one ETag/,
    reason: "the judge sends a bare 0, which the pattern of the header does not allow",
  },
  {
    check: "positive_data_acceptance",
    words:
      /must be one of|needs a node_count|is no metric|is no parameter|is no scope of|is not a type of event|role: must be replica|console is not for|GET \/catalog|This installation has no/,
    reason: "what the catalog has differs by installation and engine, and is read there",
  },
  {
    check: "positive_data_acceptance",
    words: /is no (attachment|pending update)|is nothing of the organization|is no channel|has no such/,
    reason: "ids in bodies name objects that the judge does not have",
  },
  {
    check: "positive_data_acceptance",
    words: /^4(12|22) |must be Running|which the service has/,
    reason: "the state or the engine of the object stands against it",
  },
  {
    check: "positive_data_acceptance",
    words:
      /invalid_descriptor|smtp_required|cannot be changed here|a channel of type|must be before to|configuration[.:]/,
    reason: "members that depend on each other are told by the detail and by /schemas/project.json",
  },
  {
    check: "positive_data_acceptance",
    words:
      /be PEM|begin with https?:|printable ASCII|plain (ASCII|address)|e-mail address|a domain of yours|IPv4 or IPv6|U\+0000/,
    reason:
      "no keyword of JSON Schema says this: certificates, networks, addresses, domains, texts inside of free objects",
  },
  {
    check: "not_a_server_error",
    words: /not_configured|machine_unreachable|model_unreachable/,
    reason: "the installation has no model, and the machine of a service that is being made does not answer yet",
  },
  {
    check: "negative_data_rejection",
    words: /[?&](\w+=(&|$)|\w+_id=)/,
    reason: "a filter by nothing, or by an id that nothing has, finds nothing",
  },
];

const isListed = ({ check, status, words }: Finding) =>
  listed.some((each) => each.check === check && each.words.test(`${status} ${words}`));

test("every answer is as /openapi.json says, and every input that it allows is taken", {
  timeout: 420_000,
}, async () => {
  const { base_url: baseUrl, ca_file: caFile } = platform.admin;
  const { findings, requests } = await judgeOpenApi({
    baseUrl,
    caFile,
    authorization: platform.owner,
    directory,
    seconds: 240,
    without: ownEnd,
  });
  expect(requests).toBeGreaterThan(2_000);
  const open = findings.filter((finding) => !isListed(finding));
  expect(open.map(({ check, operation, status, words }) => `${check} ${operation}: ${status} ${words}`)).toEqual([]);
});
