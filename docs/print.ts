import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Setting } from "../common/src/config.ts";
import { errorsByStatus } from "../common/src/errors.ts";
import { settings as controllerSettings } from "../controller/src/config.ts";
import type { DataField, EventDefinition } from "../controller/src/kernel/outbox/event-definition.ts";
import { eventTypes } from "../controller/src/systems.ts";
import { alertRuleLifecycle } from "../controller/src/insight/alert/alert-rule-lifecycle.ts";
import { agentRolloutLifecycle } from "../controller/src/fleet/rollout/agent-rollout-lifecycle.ts";
import { backupLifecycle } from "../controller/src/services/backup/backup-lifecycle.ts";
import { drillLifecycle } from "../controller/src/services/backup/drill/drill-lifecycle.ts";
import { taskLifecycle } from "../controller/src/fleet/task/task-lifecycle.ts";
import { hostDrainLifecycle, hostLifecycle } from "../controller/src/fleet/host/host-lifecycle.ts";
import { sdkMethods } from "../gateway/src/openapi/sdk-methods.ts";
import { sdkRequests } from "../gateway/src/openapi/sdk-requests.ts";
import { sdkResponses } from "../gateway/src/openapi/sdk-responses.ts";
import { settings as hostSettings } from "../host/src/config.ts";
import { inferenceSettings } from "../inference/src/config.ts";
import { machineLifecycle } from "../controller/src/fleet/machine/machine-lifecycle.ts";
import { authorityRotationLifecycle } from "../controller/src/kernel/pki/authority-rotation-lifecycle.ts";
import { compositionLifecycle } from "../controller/src/composition/composition-lifecycle.ts";
import { queueLifecycle } from "../controller/src/queue/queue-lifecycle.ts";
import { managedServiceLifecycle } from "../controller/src/services/service/managed-service-lifecycle.ts";
import { metricsPage } from "./metrics-page.ts";

/**
 * Prints the pages that are generated from tables in the code: life cycles, errors, settings, metrics, commands.
 * `--check` writes nothing, and fails if a page differs from its table.
 */

interface Table {
  readonly name: string;
  readonly rows: readonly (readonly [from: string, event: string, to: string, effect: string])[];
}

function row(...cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function statesPage({ name, rows }: Table): string {
  const body = rows.map(([from, event, to, effect]) => row(from, event, to, effect === "none" ? "" : effect));
  return [
    `# States: ${name}`,
    "",
    row("from", "event", "to", "effect"),
    row("---", "---", "---", "---"),
    ...body,
    "",
  ].join("\n");
}

function errorsPage(): string {
  const body = errorsByStatus.map(([key, entry]) =>
    row(`\`${key.toLowerCase()}\``, String(entry.status), entry.grpc, entry.title, entry.help),
  );
  const head = [row("code", "HTTP", "gRPC", "title", "what to do"), row("---", "---", "---", "---", "---")];
  return [
    "# Errors",
    "",
    "Each is also a page of the installation itself: `{base_url}/docs/errors/<code>`.",
    "",
    ...head,
    ...body,
    "",
  ].join("\n");
}

function settingsPage(): string {
  const section = (process: string, settings: Readonly<Record<string, Setting<unknown>>>) => [
    `## ${process}`,
    "",
    row("variable", "meaning", "when not set"),
    row("---", "---", "---"),
    ...Object.values(settings).map(({ variable, description, fallback }) =>
      row(
        `\`${variable}\``,
        description,
        fallback === undefined ? "must be set" : fallback === "" ? "" : `\`${fallback}\``,
      ),
    ),
    "",
  ];
  return [
    "# Settings",
    "",
    "Read from the environment once, when a process starts.",
    "",
    ...section("controller", controllerSettings),
    ...section("host", hostSettings),
    ...section("inference", inferenceSettings),
  ].join("\n");
}

function typeOf({ type, optional, nullable }: DataField): string {
  if (nullable === true) return `${type} or null`;
  return optional === true ? `${type}, optional` : type;
}

function eventsPage(): string {
  const section = ([type, { when, data, example, planned, optIn }]: readonly [string, EventDefinition]) => [
    `## ${type}`,
    "",
    `It happens when ${when}.${optIn === true ? " Webhooks get it only when their `events` name it." : ""}${planned === true ? " This version makes none yet; filters of webhooks may name it already." : ""}`,
    "",
    row("member of data", "type", "meaning"),
    row("---", "---", "---"),
    ...Object.entries(data).map(([name, field]) => row(`\`${name}\``, typeOf(field), field.meaning)),
    "",
    "```json",
    JSON.stringify({ id: exampleId, event_type: type, timestamp: "2026-11-21T10:00:00.000Z", data: example }, null, 2),
    "```",
    "",
  ];
  return [
    "# Events",
    "",
    "Every event is recorded once and kept for 90 days: `GET /events`, `GET /managed-services/{id}/events`. The same JSON is the",
    "body of a webhook delivery. An event can arrive more than once; its `id` stays the same. Members can be added to `data`.",
    "`/openapi.json` has each type below `webhooks`, with its schema and an example.",
    "",
    ...[...eventTypes].flatMap(section),
  ].join("\n");
}

const exampleId = "0198f2a4-9b3c-7e55-b1d2-6a0c4f8e2d31";

/** The command line loads the SDK, so the SDK is printed first. */
const pages: Readonly<Record<string, () => string | Promise<string>>> = {
  "../sdk/src/responses.ts": sdkResponses,
  "../sdk/src/requests.ts": sdkRequests,
  "../sdk/src/methods.ts": sdkMethods,
  "states/managed-service.md": () => statesPage(managedServiceLifecycle),
  "states/backup.md": () => statesPage(backupLifecycle),
  "states/drill.md": () => statesPage(drillLifecycle),
  "states/host.md": () => statesPage(hostLifecycle),
  "states/host-drain.md": () => statesPage(hostDrainLifecycle),
  "states/machine.md": () => statesPage(machineLifecycle),
  "states/queue.md": () => statesPage(queueLifecycle),
  "states/composition.md": () => statesPage(compositionLifecycle),
  "states/task.md": () => statesPage(taskLifecycle),
  "states/authority-rotation.md": () => statesPage(authorityRotationLifecycle),
  "states/agent-rollout.md": () => statesPage(agentRolloutLifecycle),
  "states/alert-rule.md": () => statesPage(alertRuleLifecycle),
  "cli.md": async () => (await import("./cli-page.ts")).cliPage(),
  "errors.md": errorsPage,
  "events.md": eventsPage,
  "metrics.md": metricsPage,
  "settings.md": settingsPage,
};

const checking = process.argv.includes("--check");
const outdated: string[] = [];
for (const [name, print] of Object.entries(pages)) {
  const page = await print();
  const file = join(import.meta.dirname, name);
  const present = await readFile(file, "utf8").catch(() => "");
  if (present === page) continue;
  outdated.push(name);
  if (checking) continue;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, page);
}
process.stdout.write(
  `${Object.keys(pages).length} pages, ${outdated.length} ${checking ? "not current" : "written"}\n`,
);
if (checking && outdated.length > 0) {
  process.stderr.write(`not current: ${outdated.join(", ")}; run npm run generate\n`);
  process.exitCode = 1;
}
