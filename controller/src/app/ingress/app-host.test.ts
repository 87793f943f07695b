import { expect, test } from "vitest";
import { newMetadata } from "#kernel/store/resource.ts";
import { appHost } from "./app-host.ts";

const id = "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10";
const hostOf = (name: string) =>
  appHost(
    { metadata: newMetadata(id, 0, { name }), spec: { homeUrl: null, attachments: [], domains: [] }, status: {} },
    "holdfast.test",
  );

test.each([
  ["shop", "shop-1d2b0c9e7f10.apps.holdfast.test"],
  ["a".repeat(63), `${"a".repeat(50)}-1d2b0c9e7f10.apps.holdfast.test`],
  [`${"a".repeat(49)}-b`, `${"a".repeat(49)}-1d2b0c9e7f10.apps.holdfast.test`],
])("the app %s has a name of one label below apps", (name, host) => {
  expect(hostOf(name)).toBe(host);
  expect(host.split(".")[0]?.length).toBeLessThanOrEqual(63);
});
