import type { App, HostedApp } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import type { Context } from "../context.ts";
import { createOutput, type Format } from "../output.ts";
import { renderTable } from "../table.ts";
import { appColumns, appView, showApp } from "./app-hosting.ts";

const hosted = partial<HostedApp>({
  image_ref: "vol:1",
  deployment_number: 1,
  serves_newest: true,
  serving_deployment_number: 1,
  serving_image_ref: "vol:1",
  failed_deployment_number: null,
  failed_image_ref: null,
  reason: null,
  last_lines: [],
  url: "https://vol.test",
});
const app = (change: Partial<HostedApp> = {}, operation: App["operation"] = null) =>
  partial<App>({
    name: "vol",
    id: "019a",
    status: "Running",
    home_url: null,
    attachments: [partial({ kind: "postgresql" }), partial({ kind: "files" })],
    operation,
    hosted: { ...hosted, ...change },
  });
const failed = app({
  failed_image_ref: "nouser:1",
  failed_deployment_number: 2,
  serves_newest: false,
  reason: "The image has no user carl.",
  last_lines: ["starting", "no such user"],
});

async function textOf(app: App, format: Format = "table"): Promise<string> {
  let text = "";
  const output = await createOutput(format, { write: (part) => (text += part) }, {});
  showApp(partial<Context>({ output }), app);
  return text;
}

test("an app has the release that serves, and the newest deployment that failed with its reason and lines", async () => {
  expect(await textOf(failed)).toBe(`name      vol
id        019a
status    Running
serves    vol:1 (deployment 1)
newest    nouser:1 (deployment 2): failed
reason    The image has no user carl.
url       https://vol.test
home_url  -
attached  postgresql, files

The last lines of the failed release:
  starting
  no such user
`);
  expect(JSON.parse(await textOf(failed, "json"))).toMatchObject({
    hosted: { last_lines: ["starting", "no such user"] },
  });
});

test("a list of apps has the release that serves beside one that does not", () => {
  const first = { serving_image_ref: null, serving_deployment_number: null, serves_newest: false };
  const apps = [app(), failed, app(first, partial<NonNullable<App["operation"]>>({ id: "019b" }))];
  expect(renderTable(apps.map(appView), appColumns.slice(2, 6))).toBe(
    `STATUS   SERVES                NEWEST                             REASON
Running  vol:1 (deployment 1)  -                                  -
Running  vol:1 (deployment 1)  nouser:1 (deployment 2): failed    The image has no user carl.
Running  -                     vol:1 (deployment 1): in progress  -
`,
  );
});

test("an app that runs outside of the platform has no release", async () => {
  expect(
    await textOf(partial<App>({ name: "vol", hosted: null, attachments: [], home_url: "https://vol.example" })),
  ).toContain("serves    -\nnewest    -\nreason    -\n");
});
