import { partial } from "@holdfast/testing/partial.ts";
import type { MetricsExport } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import {
  configurationOf,
  destinations,
  droppedItems,
  exportChangeOf,
  exportInputOf,
  exportState,
} from "./export-view.ts";

test("a configuration has the settings of its type that are not empty", () => {
  const values = { url: " https://metrics.example/api/v1/write ", username: "", api_key: "of another type" };
  expect(configurationOf("prometheus_remote_write", values)).toEqual({ url: "https://metrics.example/api/v1/write" });
});

test("each type of destination accepts some data and has settings", () => {
  for (const [type, { data, fields }] of Object.entries(destinations)) {
    expect(data.length, type).toBeGreaterThan(0);
    expect(new Set(fields.map(({ name }) => name)).size, type).toBe(fields.length);
    expect(fields.length, type).toBeGreaterThan(0);
  }
});

const integration = { is_enabled: true, consecutive_failures: 0, last_attempt_at: "2030-01-01T00:00:00Z" };
test.each([
  [{}, "delivering"],
  [{ last_attempt_at: null }, "waiting"],
  [{ consecutive_failures: 3 }, "failing"],
  [{ consecutive_failures: 3, is_enabled: false }, "disabled"],
])("an export with %j is %s", (change, text) =>
  expect(exportState(partial<MetricsExport>({ ...integration, ...change })).text).toBe(text),
);

test("dropped items are counted over all reasons", () => {
  expect(droppedItems(partial<MetricsExport>({ dropped: { too_old: 1, refused: 2 } }))).toBe(3);
});

test("the form has no stored secret, and changes the edited settings alone", () => {
  const input = exportInputOf(
    partial<MetricsExport>({
      name: "grafana",
      export_interval_seconds: 60,
      destination_type: "prometheus_remote_write",
      configuration: { url: "https://metrics.example/write", username: null, password: "********", labels: { a: "b" } },
    }),
  );
  expect(input).toEqual({
    name: "grafana",
    interval: "60",
    url: "https://metrics.example/write",
    username: "",
    password: "",
    bearer_token: "",
    tenant_id: "",
  });
  expect(exportChangeOf("prometheus_remote_write", {})).toEqual({});
  expect(exportChangeOf("prometheus_remote_write", { interval: "30", tenant_id: " ", password: "p" })).toEqual({
    export_interval_seconds: 30,
    configuration: { tenant_id: null, password: "p" },
  });
});
