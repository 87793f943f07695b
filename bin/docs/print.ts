import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorsByStatus } from "../../common/src/errors.ts";
import { eventTypes } from "../../controller/src/systems.ts";
import { sdkMethods } from "../../gateway/src/openapi/sdk-methods.ts";
import { sdkRequests } from "../../gateway/src/openapi/sdk-requests.ts";
import { sdkResponses } from "../../gateway/src/openapi/sdk-responses.ts";
import { decisionsPage } from "./decisions-page.ts";
import { eventsPages } from "./events-page.ts";
import { metricsPages } from "./metrics-page.ts";
import { table } from "./pages.ts";
import { sdkEvents } from "./sdk-events.ts";
import { settingsPages } from "./settings-page.ts";
import { statesPages } from "./states-page.ts";
import { tsqlFeaturesPage } from "./tsql-features-page.ts";

/**
 * Prints the pages that are generated from tables in the code: life cycles, errors, settings, metrics, commands, and
 * the printed files of the SDK.
 * Folders of pages that are printed one a group contain no other pages. `--check` writes nothing, and fails if a page
 * differs from its table.
 */

/** The folder of the pages. */
const pages = join(import.meta.dirname, "../../docs");

const folders = ["cli", "events", "metrics", "settings", "states"].map((name) => `reference/${name}`);

function errorsPage(): string {
  const rows = errorsByStatus.map(([key, entry]) => [
    `\`${key.toLowerCase()}\``,
    String(entry.status),
    entry.grpc,
    entry.title,
    entry.help,
  ]);
  return [
    "# Errors",
    "",
    "Each error is also a page of the installation itself: `{base_url}/docs/errors/<code>`.",
    "",
    ...table(["code", "HTTP", "gRPC", "title", "what to do"], rows),
    "",
  ].join("\n");
}

const checking = process.argv.includes("--check");
const outdated: string[] = [];
const printed = new Set<string>();

/** Writes the page if it is not current. */
async function print(name: string, page: string): Promise<void> {
  printed.add(name);
  const file = join(pages, name);
  const present = await readFile(file, "utf8").catch(() => "");
  if (present === page) return;
  outdated.push(name);
  if (checking) return;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, page);
}

/** Removes pages of groups that no longer exist. */
async function removeOthers(folder: string): Promise<void> {
  for (const file of await readdir(join(pages, folder)).catch(() => [])) {
    const name = `${folder}/${file}`;
    if (printed.has(name)) continue;
    outdated.push(name);
    if (!checking) await rm(join(pages, name));
  }
}

await print("../sdk/src/responses.ts", await sdkResponses());
await print("../sdk/src/requests.ts", await sdkRequests());
await print("../sdk/src/methods.ts", sdkMethods());
await print("../sdk/src/event-data.ts", sdkEvents(eventTypes));
// The command line loads the SDK, so the SDK is printed first.
const { cliPages } = await import("./cli-page.ts");
const groups = [await cliPages(), eventsPages(), metricsPages(), settingsPages(), await statesPages()];
for (const pages of groups) for (const [name, page] of pages) await print(`reference/${name}`, page);
await print("reference/errors.md", errorsPage());
await print("reference/tsql-features.md", tsqlFeaturesPage());
await print("development/adr/README.md", await decisionsPage());
for (const folder of folders) await removeOthers(folder);

process.stdout.write(`${printed.size} pages, ${outdated.length} ${checking ? "not current" : "written"}\n`);
if (checking && outdated.length > 0) {
  process.stderr.write(`not current: ${outdated.join(", ")}; run npm run generate\n`);
  process.exitCode = 1;
}
